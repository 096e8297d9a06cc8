// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/elitekv/caches.h"
#include "calibrate/elitekv/outputs.h"
#include "core/error.h"
#include "eval/cached_run.h"
#include "io/file.h"
#include "io/json.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

std::vector<EliteLayer> every_layer(const TinyModel& tiny, const std::vector<std::vector<std::size_t>>& elite) {
  std::vector<EliteLayer> layers(tiny.model->config().layers());
  for (std::size_t n = 0; n < layers.size(); ++n) {
    layers[n].layer = n;
    layers[n].elite = elite;
  }
  return layers;
}

/// NLL of 40 tokens in groups of at most `group`.
std::vector<float> nll(Decoder& decoder, const std::vector<EliteLayer>& layers,
                       std::size_t group = LayerCache::kUnlimited, CacheBytes* held = nullptr) {
  const auto tokens = TinyModel::tokens(40);
  const Model& model = decoder.model();
  Cache cache = EliteCaches(model.backend(), model.config(), layers, tokens.size()).make();
  std::vector<float> found;
  const CacheReport report =
      run_cached(decoder, cache, tokens, {.group = group}, [&](const ResidualStream& pass, std::size_t first) {
        const auto part = decoder.nll(pass, successors(tokens, first, pass.tokens()));
        found.insert(found.end(), part.begin(), part.end());
      });
  if (held != nullptr) *held = report.end;
  found.pop_back();
  return found;
}
std::vector<float> nll(TinyModel& tiny, const std::vector<EliteLayer>& layers) { return nll(*tiny.decoder, layers); }

/// The exact matrix [W_k without elite rows ; W_v] as factors of full rank: up is the identity.
void set_exact_factors(EliteLayer& layer, const TinyModel& tiny, bool biased) {
  const ModelConfig& config = tiny.model->config();
  layer.key_rows = tiny.source->projection(layer.layer, 'k');
  const auto wv = tiny.source->projection(layer.layer, 'v');
  layer.down.clear();
  for (std::size_t row = 0; row < layer.key_rows.size() / config.d_model; ++row) {
    const std::size_t head = row / config.head_dim(), chunk = row % config.head_dim() % config.chunks();
    if (std::ranges::find(layer.elite[head], chunk) != layer.elite[head].end()) continue;
    const auto from = layer.key_rows.begin() + static_cast<std::ptrdiff_t>(row * config.d_model);
    layer.down.insert(layer.down.end(), from, from + static_cast<std::ptrdiff_t>(config.d_model));
  }
  layer.down.insert(layer.down.end(), wv.begin(), wv.end());
  layer.rank = layer.down.size() / config.d_model;
  layer.up.assign(layer.rank * layer.rank, 0);
  for (std::size_t i = 0; i < layer.rank; ++i) layer.up[i * layer.rank + i] = 1;
  if (!biased) return;
  layer.key_bias = tiny.source->projection_bias(layer.layer, 'k');
  layer.value_bias = tiny.source->projection_bias(layer.layer, 'v');
}

TEST(EliteYarn, UnrotatedChannelsKeepTheAttentionFactorWithAndWithoutFactors) {
  // Heads of 8 channels; a factor of e^5 makes YaRN's attention factor 0.1 · 5 + 1.
  TinyModel tiny;
  Json config = parse_json(read_text_file(tiny.folder / "model/config.json", 1 << 20), "config");
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", std::exp(5.0)}, {"original_max_position_embeddings", 16}};
  write_file_atomically(tiny.folder / "model/config.json", dump_json(config), true);
  const auto source = ModelSource::open(tiny.folder / "model");
  const Model model(*source, *tiny.backend);
  Decoder decoder(model);
  const auto partial = every_layer(tiny, {{0, 2}, {1, 3}});
  auto factors = partial;
  for (EliteLayer& layer : factors) set_exact_factors(layer, tiny, false);
  const auto expected = nll(decoder, partial);
  EXPECT_LT(largest_difference(nll(decoder, factors), expected), 1e-4);
  EXPECT_LT(largest_difference(nll(decoder, factors, 5), expected), 1e-4);
  // The slow chunks hardly rotate in 40 tokens: only YaRN's factor is left there, on queries and on keys.
  EXPECT_GT(largest_difference(expected, nll(tiny, partial)), 1e-3);
}

TEST(EliteCache, AllChunksEliteIsTheModelItself) {
  TinyModel tiny;
  const auto plain = document_nll(*tiny.decoder, TinyModel::tokens(40));
  EXPECT_LT(largest_difference(nll(tiny, every_layer(tiny, {{0, 1, 2, 3}, {3, 2, 1, 0}})), plain), 1e-6);
}

TEST(EliteCache, FewerEliteChunksChangeTheModel) {
  TinyModel tiny;
  const auto plain = document_nll(*tiny.decoder, TinyModel::tokens(40));
  EXPECT_GT(largest_difference(nll(tiny, every_layer(tiny, {{0}, {2}})), plain), 1e-3);
}

/// NLL with and without factors of full rank. @param biased  whether the factors' keys and values get their biases
double full_rank_error(TinyModel& tiny, bool biased, std::size_t group = LayerCache::kUnlimited) {
  auto layers = every_layer(tiny, {{0, 2}, {1, 3}});
  const auto partial = nll(tiny, layers);
  for (EliteLayer& layer : layers) set_exact_factors(layer, tiny, biased);
  CacheBytes held;
  const double error = largest_difference(nll(*tiny.decoder, layers, group, &held), partial);
  // 2rG + d_ckv values of each token and layer.
  EXPECT_EQ(held.stored, 40 * layers.size() * (2 * 2 * 2 + layers.front().rank) * 2);
  return error;
}

TEST(EliteCache, FactorsOfFullRankEqualPartialRope) {
  TinyModel tiny;
  for (const std::size_t group : {std::size_t{40}, std::size_t{13}, std::size_t{3}, std::size_t{1}})
    EXPECT_LT(full_rank_error(tiny, false, group), 1e-4) << "groups of " << group;
}

TEST(EliteCache, BiasesAreAddedToWhatTheFactorsYield) {
  TinyModel tiny(testing::TinyKind::kBiased);
  for (const std::size_t group : {std::size_t{40}, std::size_t{1}})
    EXPECT_LT(full_rank_error(tiny, true, group), 1e-4) << "groups of " << group;
  EXPECT_GT(full_rank_error(tiny, false), 1e-2);
}

TEST(EliteCache, QueriesAndOutputsOfItsOwnTakeTheModelsPlace) {
  for (const auto kind : {testing::TinyKind::kPlain, testing::TinyKind::kBiased}) {
    TinyModel tiny(kind);
    const ModelConfig& config = tiny.model->config();
    const std::size_t channels = config.query_heads() * config.head_dim();
    auto layers = every_layer(tiny, {{0, 2}, {1, 3}});
    for (EliteLayer& layer : layers) set_exact_factors(layer, tiny, kind == testing::TinyKind::kBiased);
    const auto own = nll(tiny, layers);
    for (EliteLayer& layer : layers) {
      layer.query_rows = tiny.source->projection(layer.layer, 'q');
      layer.query_bias = tiny.source->projection_bias(layer.layer, 'q');
      layer.output.assign(channels * channels, 0);
      for (std::size_t n = 0; n < channels; ++n) layer.output[n * channels + n] = 1;
    }
    EXPECT_LT(largest_difference(nll(tiny, layers), own), 1e-5) << "the model's own W_q and an identity";
    for (EliteLayer& layer : layers)
      for (std::size_t n = 0; n < channels; ++n) {
        layer.output[n * channels + (n + 1) % channels] = 0.5F;
        layer.query_rows[n * config.d_model] += 1;
      }
    const auto changed = nll(tiny, layers);
    EXPECT_GT(largest_difference(changed, own), 1e-2);
    EXPECT_LT(largest_difference(nll(*tiny.decoder, layers, 1), changed), 1e-4) << "in the latent space";
  }
}

TEST(EliteOutputs, AreTheIdentityWhereNothingIsLostAndHelpWhereItIs) {
  TinyModel tiny;
  const ModelConfig& config = tiny.model->config();
  const std::size_t channels = config.query_heads() * config.head_dim();
  const auto ops = make_calibration_ops(*tiny.backend);
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(40)};
  auto layers = every_layer(tiny, {{0, 1, 2, 3}, {0, 1, 2, 3}});
  for (EliteLayer& layer : layers) set_exact_factors(layer, tiny, false);
  const auto fit = [&] { return fit_outputs(*tiny.decoder, *ops, layers, documents, [](std::size_t) {}); };
  for (const FactorTensor& tensor : fit())
    for (std::size_t n = 0; n < tensor.values.size(); ++n)
      EXPECT_NEAR(tensor.values[n], n % (channels + 1) == 0 ? 1 : 0, 1e-3);

  layers = every_layer(tiny, {{0}, {0}});
  for (EliteLayer& layer : layers) set_exact_factors(layer, tiny, false);
  const auto plain = document_nll(*tiny.decoder, documents.front());
  const double before = largest_difference(nll(tiny, layers), plain);
  const auto tensors = fit();
  for (std::size_t n = 0; n < layers.size(); ++n) layers[n].output = tensors[n].values;
  EXPECT_LT(largest_difference(nll(tiny, layers), plain), 0.7 * before);
}

}  // namespace
}  // namespace kvs
