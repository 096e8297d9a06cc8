#include "eval/elite_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "eval/elite_config.h"
#include "io/file.h"
#include "io/json.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

std::vector<EliteLayer> every_layer(const TinyModel& tiny, const std::vector<std::vector<std::size_t>>& elite) {
  std::vector<EliteLayer> layers;
  for (std::size_t n = 0; n < tiny.model->config().layers; ++n) layers.push_back({n, elite, {}, {}});
  return layers;
}

std::vector<float> nll(TinyModel& tiny, std::vector<EliteLayer> layers) {
  EliteModel hook(*tiny.model, std::move(layers));
  return document_nll(*tiny.decoder, TinyModel::tokens(40), &hook);
}

/// Runs EliteModel and keeps what it made of each layer's keys.
class Watched final : public StateHook {
 public:
  explicit Watched(EliteModel& inner) : inner_(inner) {}
  std::vector<float> before, after;  // of layer 0

  void before_rope(LayerStates& states) override {
    inner_.before_rope(states);
    if (states.layer == 0) before = download(states.backend, states.k);
  }
  void after_rope(LayerStates& states) override {
    inner_.after_rope(states);
    if (states.layer == 0) after = download(states.backend, states.k);
  }

 private:
  EliteModel& inner_;
};

TEST(EliteYarn, UnrotatedChunksKeepTheAttentionFactor) {
  // Heads of 8 channels; a factor of e^5 makes YaRN's attention factor 0.1 · 5 + 1.
  testing::TemporaryFolder folder;
  testing::write_tiny_model(folder / "model");
  Json config = parse_json(read_text_file(folder / "model/config.json", 1 << 20), "config");
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", std::exp(5.0)}, {"original_max_position_embeddings", 16}};
  write_file_atomically(folder / "model/config.json", dump_json(config), true);
  const auto source = ModelSource::open(folder / "model");
  const auto backend = make_backend("cpu", DType::kF32);
  const Model model(*source, *backend);
  Decoder decoder(model);
  const std::vector<std::vector<std::size_t>> elite(model.config().kv_heads, {0});
  EliteModel hook(model, {{0, elite, {}, {}}});
  Watched watched(hook);
  const auto tokens = TinyModel::tokens(20);
  document_nll(decoder, tokens, &watched);
  const std::size_t head_dim = model.config().head_dim, chunks = model.config().chunks();
  ASSERT_EQ(watched.after.size(), model.config().kv_heads * tokens.size() * head_dim);
  double turned = 0;
  for (std::size_t i = 0; i < watched.after.size(); ++i) {
    const double difference = std::abs(watched.after[i] - 1.5 * watched.before[i]);
    const bool elite_chunk = i % head_dim % chunks == 0;
    turned = std::max(turned, elite_chunk ? difference : 0);
    // There and back: four roundings of values below about 4.
    const double tolerance = elite_chunk ? HUGE_VAL : 4e-6 * std::max(1.0, std::abs(1.5 * double{watched.before[i]}));
    ASSERT_LT(difference, tolerance) << i;
  }
  EXPECT_GT(turned, 0.1);
}

TEST(EliteHook, AllChunksEliteIsTheModelItself) {
  TinyModel tiny;
  const auto plain = document_nll(*tiny.decoder, TinyModel::tokens(40));
  EXPECT_EQ(nll(tiny, every_layer(tiny, {{0, 1, 2, 3}, {3, 2, 1, 0}})), plain);
}

TEST(EliteHook, FewerEliteChunksChangeTheModel) {
  TinyModel tiny;
  const auto plain = document_nll(*tiny.decoder, TinyModel::tokens(40));
  EXPECT_GT(largest_difference(nll(tiny, every_layer(tiny, {{0}, {2}})), plain), 1e-3);
}

/// NLL with and without factors of full rank. @param biased  whether the factors' keys and values get their biases
double full_rank_error(TinyModel& tiny, bool biased) {
  const std::vector<std::vector<std::size_t>> elite{{0, 2}, {1, 3}};
  auto layers = every_layer(tiny, elite);
  const auto partial = nll(tiny, every_layer(tiny, elite));
  const ModelConfig& config = tiny.model->config();
  for (EliteLayer& layer : layers) {
    // The exact matrix [W_k without elite rows ; W_v] stands for up · down of full rank.
    const auto wk = tiny.source->projection(layer.layer, 'k'), wv = tiny.source->projection(layer.layer, 'v');
    std::vector<double> exact;
    for (std::size_t row = 0; row < wk.size() / config.d_model; ++row) {
      const std::size_t head = row / config.head_dim, chunk = row % config.head_dim % config.chunks();
      if (std::ranges::find(elite[head], chunk) != elite[head].end()) continue;
      exact.insert(exact.end(), wk.begin() + static_cast<std::ptrdiff_t>(row * config.d_model),
                   wk.begin() + static_cast<std::ptrdiff_t>((row + 1) * config.d_model));
    }
    exact.insert(exact.end(), wv.begin(), wv.end());
    layer.projection = merge_projection(wk, exact, elite, config.head_dim, config.head_dim, config.d_model);
    if (!biased) continue;
    layer.bias = tiny.source->projection_bias(layer.layer, 'k');
    const auto values = tiny.source->projection_bias(layer.layer, 'v');
    layer.bias.insert(layer.bias.end(), values.begin(), values.end());
  }
  return largest_difference(nll(tiny, std::move(layers)), partial);
}

TEST(EliteHook, FactorsOfFullRankEqualPartialRope) {
  TinyModel tiny;
  EXPECT_LT(full_rank_error(tiny, false), 1e-4);
}

TEST(EliteHook, BiasesAreAddedToWhatTheFactorsYield) {
  TinyModel tiny(testing::TinyKind::kBiased);
  EXPECT_LT(full_rank_error(tiny, true), 1e-4);
  EXPECT_GT(full_rank_error(tiny, false), 1e-2);
}

TEST(EliteHook, NormedKeysHaveNoFactors) {
  EXPECT_EQ(factor_obstacle(TinyModel().model->config()), "");
  const TinyModel normed(testing::TinyKind::kNormed);
  EXPECT_NE(factor_obstacle(normed.model->config()).find("QK-norm"), std::string::npos);
}

}  // namespace
}  // namespace kvs
