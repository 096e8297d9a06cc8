// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

Json golden_of(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

/// Returns the length of the difference as a share of the expected values' length.
double relative_error(std::span<const float> found, std::span<const float> expected) {
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    squares += double{expected[i]} * double{expected[i]};
    error += std::pow(double{found[i]} - double{expected[i]}, 2);
  }
  EXPECT_EQ(found.size(), expected.size());
  EXPECT_GT(squares, 0);
  return std::sqrt(error / squares);
}

/// Models with recurrent layers (tests/parity/make_models.py --golden).
class RecurrentBlocks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { open(golden_of(GetParam())); }
  void open(const Json& golden) {
    golden_ = golden;
    tokens_ = golden_of("tokens").get<std::vector<std::int32_t>>();
    test::write_formula_model(folder_ / "model", golden_["config"], golden_["tensors"]);
    source_ = ModelSource::open(folder_ / "model");
    model_ = std::make_unique<Model>(*source_, *backend_);
    decoder_ = std::make_unique<Decoder>(*model_);
  }

  std::size_t layers() const { return model_->config().layers(); }
  Cache full_cache() const { return test::cache_of(model_->config(), "full"); }
  /// Runs tokens [first, first + count) of `members` equal members through `cache`. @return their rows
  std::vector<float> run(Cache* cache, std::size_t first, std::size_t count, std::size_t members = 1) {
    ResidualStream hidden = decoder_->embed(std::span(tokens_).subspan(first, count), first, tokens_.size());
    if (members > 1) hidden = decoder_->repeat(hidden, members);
    decoder_->advance(hidden, layers(), nullptr, cache);
    return download(*backend_, hidden.rows.view());
  }
  std::vector<float> state(Cache& cache) const {
    std::vector<float> all;
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      if (!model_->config().layer[layer].has_recurrence()) continue;
      for (const auto& part : {download(*backend_, cache.recurrent(layer).inputs.view()),
                               download(*backend_, cache.recurrent(layer).memory.view())})
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  test::TemporaryDirectory folder_;
  Json golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
};

TEST_P(RecurrentBlocks, StatesEqualTransformers) {
  Cache cache = full_cache();
  run(&cache, 0, tokens_.size());
  const Json& expected = golden_["recurrent"];
  const RecurrentState& held = cache.recurrent(expected["layer"].get<std::size_t>());
  const auto inputs = expected["inputs"].get<std::vector<float>>();
  const std::vector<float> found_inputs = download(*backend_, held.inputs.view());
  const std::size_t taps = held.inputs.view().extent(0), channels = inputs.size() / taps;
  for (std::size_t tap = 0; tap < taps; ++tap)
    for (std::size_t channel = 0; channel < channels; ++channel)
      EXPECT_NEAR(found_inputs[tap * held.inputs.view().extent(1) + channel], inputs[tap * channels + channel], 1e-5);
  if (!expected.contains("memory")) return;
  const auto memory = expected["memory"].get<std::vector<float>>();  // [key channel, value channel] of the last head
  const std::vector<float> last = download(*backend_, held.memory.view().slice(held.memory.view().extent(0) - 1));
  EXPECT_LT(relative_error(std::span(last).first(memory.size()), memory), 1e-5);
}

TEST_P(RecurrentBlocks, GroupsAndAPrefixEqualOnePass) {
  Cache whole = full_cache();
  const std::vector<float> expected = run(&whole, 0, tokens_.size());
  EXPECT_LT(relative_error(run(nullptr, 0, tokens_.size()), expected), 1e-5);
  for (const std::size_t group : {17, 250}) {
    Cache cache = full_cache();
    std::vector<float> found;
    for (std::size_t first = 0; first < tokens_.size(); first += group) {
      const std::vector<float> part = run(&cache, first, std::min(group, tokens_.size() - first));
      found.insert(found.end(), part.begin(), part.end());
    }
    EXPECT_LT(relative_error(found, expected), 1e-5);
    EXPECT_LT(relative_error(state(cache), state(whole)), 1e-5);
  }
}

TEST_P(RecurrentBlocks, ABatchReadsTheStateAndLeavesIt) {
  constexpr std::size_t kPrefix = 40, kRest = 30;
  Cache cache = full_cache(), other = full_cache();
  run(&cache, 0, kPrefix);
  run(&other, 0, kPrefix);
  const std::vector<float> before = state(cache), expected = run(&other, kPrefix, kRest);
  const std::vector<float> batch = run(&cache, kPrefix, kRest, 3);
  EXPECT_EQ(state(cache), before);
  for (std::size_t member = 0; member < 3; ++member)
    EXPECT_LT(relative_error(std::span(batch).subspan(member * expected.size(), expected.size()), expected), 1e-5);
  EXPECT_NE(state(other), before);
  cache.hold_recurrent_states();
  run(&cache, kPrefix, kRest);
  EXPECT_EQ(state(cache), before);
}

TEST_P(RecurrentBlocks, StateBytesAreThoseOfTheConfig) {
  Cache cache = full_cache();
  EXPECT_EQ(cache.recurrent_bytes(), 0U);
  run(&cache, 0, 1);
  EXPECT_EQ(cache.recurrent_bytes(), model_->config().recurrent_values() * sizeof(float));
  run(&cache, 1, 50);
  EXPECT_EQ(cache.recurrent_bytes(), model_->config().recurrent_values() * sizeof(float));
}

class ShortestConvolution : public RecurrentBlocks {
 protected:
  void SetUp() override {
    Json golden = golden_of("qwen3_next");
    golden["config"]["linear_conv_kernel_dim"] = 1;
    for (auto& [name, shape] : golden["tensors"].items())
      if (name.ends_with("conv1d.weight")) shape[2] = 1;
    open(golden);
  }
};

TEST_F(ShortestConvolution, KeepsTheMatricesBetweenGroups) {
  Cache whole = full_cache(), cache = full_cache();
  run(&whole, 0, 60);
  run(&cache, 0, 25);
  run(&cache, 25, 35);
  EXPECT_LT(relative_error(state(cache), state(whole)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Architectures, RecurrentBlocks,
                         testing::Values("qwen3_next", "qwen3_5", "lfm2", "granitemoehybrid", "nemotron_h",
                                         "falcon_h1"),
                         [](const auto& name) { return std::string(name.param); });

/// A row of values that does not fit the tensor, in a message.
std::string refusal(const Json& config, const Json& tensors) {
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "model", config, tensors);
  try {
    (void)ModelSource::open(folder / "model");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DeltaNetConfigs, AreRefusedByName) {
  const Json golden = golden_of("qwen3_next");
  const auto with = [&](const char* key, const Json& value) {
    Json config = golden["config"];
    config[key] = value;
    return refusal(config, golden["tensors"]);
  };
  EXPECT_NE(with("linear_num_value_heads", 5).find("expected the first to divide the second"), std::string::npos);
  EXPECT_NE(with("layer_types", {"linear_attention", "conv", "full_attention"}).find("/layer_types/1: found \"conv\""),
            std::string::npos);
  EXPECT_NE(with("layer_types", Json::array({"linear_attention", "linear_attention", "linear_attention"}))
                .find("found no layer with attention"),
            std::string::npos);
  EXPECT_NE(with("linear_conv_kernel_dim", 3).find("found shape"), std::string::npos);
  EXPECT_NE(with("linear_key_head_dim", 1 << 21).find("linear_key_head_dim"), std::string::npos);
}

}  // namespace
}  // namespace kvs
