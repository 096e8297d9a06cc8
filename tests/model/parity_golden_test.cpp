// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"
#include "tests/model/recorded_keys.h"

namespace kvs {
namespace {

Json read_golden(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

/// Returns the largest difference, as a share of the largest expected value.
double relative_difference(std::span<const float> found, std::span<const float> expected) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference = std::max(difference, std::abs(double{found[i]} - double{expected[i]}));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

/// Values of one combination per architecture as Transformers computes them in f32 (tests/parity/make_models.py
/// --golden): weights by a formula, 300 tokens, more than any window here.
class ParityGolden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = read_golden(GetParam());
    tokens_ = read_golden("tokens").get<std::vector<std::int32_t>>();
    test::write_formula_model(folder_ / "model", golden_["config"], golden_["tensors"]);
    backend_ = make_backend("cpu", DType::kF32, 2);
    source_ = ModelSource::open(folder_ / "model");
    model_ = std::make_unique<Model>(*source_, *backend_);
  }

  /// The first channels of the last KV head's rows at the golden positions, as many as `golden` has: some classes of
  /// Transformers rotate a copy of the rotated channels.
  std::vector<float> chosen(const std::vector<float>& states, const char* golden) const {
    const AttentionConfig& attention = model_->config().layer[golden_["layer"].get<std::size_t>()].attention;
    std::vector<float> rows;
    const auto positions = golden_["positions"].get<std::vector<std::size_t>>();
    const std::size_t width = golden_[golden].size() / positions.size();
    for (const auto position : positions) {
      const std::size_t row = (attention.kv_heads - 1) * tokens_.size() + position;
      const auto first = states.begin() + static_cast<std::ptrdiff_t>(row * attention.head_dim);
      rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
    return rows;
  }

  test::TemporaryDirectory folder_;
  Json golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
};

TEST_P(ParityGolden, StatesLogitsAndLossEqualTransformers) {
  Decoder decoder(*model_);
  ResidualStream hidden = decoder.embed(tokens_);
  test::RecordedKeys keys;
  decoder.advance(hidden, model_->config().layers(), &keys);
  const auto layer = golden_["layer"].get<std::size_t>();
  EXPECT_LT(relative_difference(chosen(keys.k_pre[layer], "k_pre"), golden_["k_pre"].get<std::vector<float>>()), 1e-5);
  EXPECT_LT(relative_difference(chosen(keys.k_post[layer], "k_post"), golden_["k_post"].get<std::vector<float>>()),
            1e-5);

  const auto rows = golden_["rows"].get<std::vector<std::size_t>>();
  const std::vector<float> logits = decoder.logits(hidden, rows);
  constexpr double kTolerance = 1e-4;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto expected = golden_["logits"][row].get<std::vector<float>>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(logits[row * model_->config().vocabulary + i], expected[i], kTolerance) << row << " " << i;
  }
  const std::vector<float> nll = document_nll(decoder, tokens_);
  const auto expected_nll = golden_["nll"].get<std::vector<float>>();
  for (std::size_t i = 0; i < expected_nll.size(); ++i) ASSERT_NEAR(nll[13 * i], expected_nll[i], kTolerance) << i;
}

/// One pass over the first 60 tokens, more than any window here.
class Passes : public ParityGolden {
 protected:
  void SetUp() override {
    ParityGolden::SetUp();
    tokens_.resize(60);
    targets_.assign(tokens_.begin() + 1, tokens_.end());
    targets_.push_back(-1);
    decoder_ = std::make_unique<Decoder>(*model_);
    whole_ = decoder_->embed(tokens_);
    decoder_->advance(whole_, layers());
    expected_ = decoder_->nll(whole_, targets_);
  }
  std::size_t layers() const { return model_->config().layers(); }

  std::vector<std::int32_t> targets_;
  std::unique_ptr<Decoder> decoder_;
  ResidualStream whole_;
  std::vector<float> expected_;
};

TEST_P(Passes, MembersOfABatchEqualTheSingleOne) {
  ResidualStream single = decoder_->embed(tokens_);
  decoder_->advance(single, 1);
  ResidualStream batch = decoder_->repeat(single, 3);
  decoder_->advance(batch, layers());
  const std::vector<float> found = decoder_->nll(batch, targets_);
  ASSERT_EQ(found.size(), 3 * expected_.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected_[i % expected_.size()], 2e-5) << i;
}

TEST_P(Passes, SingleTokensWithACacheEqualOnePass) {
  // Chunks of a recurrence round otherwise than its single steps.
  const double tolerance = model_->config().has_recurrence() ? 1e-4 : 2e-5;
  Cache cache = test::cache_of(model_->config(), "full");
  for (std::size_t t = 0; t + 1 < tokens_.size(); ++t) {
    ResidualStream step = decoder_->embed(std::span(tokens_).subspan(t, 1), t, tokens_.size());
    decoder_->advance(step, layers(), nullptr, &cache);
    ASSERT_NEAR(decoder_->nll(step, std::span(targets_).subspan(t, 1)).front(), expected_[t], tolerance) << t;
  }
}

TEST_P(Passes, StoppedAndResumedAtAnyLayerIsBitIdentical) {
  for (std::size_t stop = 0; stop < layers(); ++stop) {
    ResidualStream parts = decoder_->embed(tokens_);
    decoder_->advance(parts, stop);
    decoder_->advance(parts, layers());
    EXPECT_EQ(download(*backend_, parts.rows.view()), download(*backend_, whole_.rows.view())) << stop;
  }
}

/// The golden Llama with another scaling.
class LengthDependentRope : public testing::TestWithParam<const char*> {};

TEST_P(LengthDependentRope, GivesTheSameStatesHoweverTheDocumentIsSplit) {
  Json golden = read_golden("llama"), rope = parse_json(GetParam(), "scaling");
  const auto tokens = read_golden("tokens").get<std::vector<std::int32_t>>();
  golden["config"]["rope_parameters"] = rope;
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "model", golden["config"], golden["tensors"]);
  const auto backend = make_backend("cpu", DType::kF32, 2);
  const auto source = ModelSource::open(folder / "model");
  const Model model(*source, *backend);
  const std::size_t layers = model.config().layers();
  Decoder decoder(model);
  const std::vector<float> whole = document_nll(decoder, tokens);

  constexpr std::size_t kPrefix = 40;  // below the original context, unlike the document
  const std::span<const std::int32_t> all(tokens);
  Cache cache = test::cache_of(model.config(), "full");
  ResidualStream prefix = decoder.embed(all.first(kPrefix), 0, tokens.size());
  decoder.advance(prefix, layers, nullptr, &cache);
  ResidualStream rest = decoder.embed(all.subspan(kPrefix), kPrefix);
  decoder.advance(rest, layers, nullptr, &cache);
  std::vector<std::int32_t> targets(tokens.begin() + kPrefix + 1, tokens.end());
  targets.push_back(-1);
  const std::vector<float> found = decoder.nll(rest, targets);
  // These sums run in other tiles: a few roundings of logits of about 5.
  for (std::size_t i = 0; i + 1 < found.size(); ++i) ASSERT_NEAR(found[i], whole[kPrefix + i], 2e-5) << i;

  // A prefix that does not know its document's length rotates its keys differently.
  Cache other = test::cache_of(model.config(), "full");
  ResidualStream alone = decoder.embed(all.first(kPrefix));
  decoder.advance(alone, layers, nullptr, &other);
  ResidualStream misled = decoder.embed(all.subspan(kPrefix), kPrefix);
  decoder.advance(misled, layers, nullptr, &other);
  EXPECT_GT(std::abs(decoder.nll(misled, targets).front() - found.front()), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Types, LengthDependentRope,
    testing::Values(R"({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0})",
                    R"({"rope_type": "longrope", "original_max_position_embeddings": 64, "rope_theta": 10000.0,
                        "short_factor": [1, 1, 1, 1, 1, 1], "long_factor": [1, 2, 3, 4, 5, 6]})"),
    [](const auto& scaling) { return scaling.index == 0 ? "Dynamic" : "LongRope"; });

const auto kArchitectures = testing::Values(
    "llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "olmo2", "gpt_neox", "seed_oss", "granite",
    "granitemoe", "ernie4_5", "glm4", "glm4_moe", "minimax_m2", "olmo3", "phi", "starcoder2", "stablelm", "smollm3",
    "exaone4", "cohere2", "olmoe", "phi_qk_layernorm", "stablelm_parallel", "ministral3", "hunyuan_v1_dense",
    "hunyuan_v1_moe", "gpt_oss", "phi_tied", "ernie4_5_moe", "gemma3_composite", "gemma4_shared", "gemma4_one_row",
    "gemma4_experts", "qwen3_vl", "mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe", "lfm2",
    "lfm2_moe", "granitemoehybrid", "nemotron_h", "falcon_h1", "llama4", "deepseek_v2", "deepseek_v3", "deepseek_v32",
    "glm_moe_dsa", "glm4_moe_lite", "mistral4", "gemma3n");
const auto kName = [](const auto& name) { return std::string(name.param); };
INSTANTIATE_TEST_SUITE_P(Architectures, ParityGolden, kArchitectures, kName);
INSTANTIATE_TEST_SUITE_P(Architectures, Passes, kArchitectures, kName);

}  // namespace
}  // namespace kvs
