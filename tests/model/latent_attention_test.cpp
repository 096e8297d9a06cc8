// SPDX-License-Identifier: Apache-2.0
#include "model/latent_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using testing::HasSubstr;

/// The golden DeepSeek-V3: 4 heads, a latent of 20 channels and a shared key of 8, 3 layers.
class LatentModel : public testing::Test {
 protected:
  void SetUp() override {
    golden_ = read("deepseek_v3");
    tokens_ = read("tokens").get<std::vector<std::int32_t>>();
    tokens_.resize(60);
    open();
  }

  static Json read(const std::string& name) {
    const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
    return parse_json(read_text_file(path, 1 << 20), path.string());
  }
  void open() {
    const std::filesystem::path path = folder_ / ("model" + std::to_string(++opened_));
    test::write_formula_model(path, golden_["config"], golden_["tensors"]);
    model_.reset();
    source_ = ModelSource::open(path);
    model_ = std::make_unique<Model>(*source_, *backend_);
  }
  std::size_t layers() const { return model_->config().layers(); }

  /// Returns the NLLs of the tokens through a cache, in groups of `group`.
  std::vector<float> nll_with(Cache& cache, std::size_t group) const {
    Decoder decoder(*model_);
    std::vector<std::int32_t> targets(tokens_.begin() + 1, tokens_.end());
    targets.push_back(-1);
    std::vector<float> all;
    for (std::size_t at = 0, count = 0; at < tokens_.size(); at += count) {
      count = std::min({group, tokens_.size() - at, cache.max_tokens_per_call()});
      ResidualStream hidden = decoder.embed(std::span(tokens_).subspan(at, count), at, tokens_.size());
      decoder.advance(hidden, layers(), nullptr, &cache);
      const std::vector<float> part = decoder.nll(hidden, std::span(targets).subspan(at, count));
      all.insert(all.end(), part.begin(), part.end());
    }
    all.pop_back();
    return all;
  }
  std::vector<float> whole() const {
    Decoder decoder(*model_);
    return document_nll(decoder, tokens_);
  }

  test::TemporaryDirectory folder_;
  int opened_ = 0;
  Json golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
};

void expect_near(const std::vector<float>& found, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << i;
}

TEST_F(LatentModel, MethodsThatKeepEverythingEqualOnePass) {
  const std::vector<float> expected = whole();
  for (const auto& [name, settings] :
       {std::pair<const char*, std::vector<std::string>>{"streaming", {"sinks=4", "cache_size=100"}},
        {"h2o", {"recent=4", "cache_size=100"}},
        {"tova", {"cache_size=100"}}}) {
    Cache cache = test::cache_of(model_->config(), name, settings);
    SCOPED_TRACE(name);
    expect_near(nll_with(cache, 1), expected, 2e-5);
  }
}

TEST_F(LatentModel, ACompressedCacheGivesOneResultHoweverTheTextIsSplit) {
  for (const auto& [name, settings] :
       {std::pair<const char*, std::vector<std::string>>{"streaming", {"sinks=4", "cache_size=16"}},
        {"freqkv", {"cache_size=24"}},
        {"h2o", {"recent=4", "cache_size=16"}},
        {"full", {"type=fp8_per_token_head"}}}) {
    SCOPED_TRACE(name);
    Cache single = test::cache_of(model_->config(), name, settings);
    const std::vector<float> expected = nll_with(single, 1);
    Cache grouped = test::cache_of(model_->config(), name, settings);
    expect_near(nll_with(grouped, 7), expected, 5e-5);
    EXPECT_EQ(grouped.bytes().stored, single.bytes().stored);
    double largest = 0;
    const std::vector<float> full = whole();
    for (std::size_t i = 0; i < full.size(); ++i) largest = std::max(largest, std::abs(double{full[i]} - expected[i]));
    EXPECT_GT(largest, 1e-4) << "nothing was compressed";
  }
}

TEST_F(LatentModel, ARowIsStoredOnceInEveryType) {
  constexpr std::size_t kRow = 28;
  for (const auto& [type, bytes] : {std::pair{"none", 2 * kRow}, {"f16", 2 * kRow}, {"fp8", kRow}}) {
    Cache cache = test::cache_of(model_->config(), "full", {std::string("type=") + type});
    (void)nll_with(cache, tokens_.size());
    EXPECT_EQ(cache.bytes().stored, layers() * tokens_.size() * bytes) << type;
  }
  test::expect_error(ErrorCode::kUsage, "a row of latent attention is key and value at once", [&] {
    test::cache_of(model_->config(), "full", {"type_k=f16", "type_v=fp8"});
  });
}

TEST_F(LatentModel, MethodsForKeysAndValuesOfHeadsAreRefused) {
  for (const char* name : {"kivi", "gqa", "elitekv"})
    EXPECT_THAT(obstacle_of(*find_method(name), model_->config()), HasSubstr("found")) << name;
  for (const char* name : {"h2o", "freqkv", "faedkv", "transform", "lagkv", "streaming"})
    EXPECT_EQ(obstacle_of(*find_method(name), model_->config()), "") << name;
}

/// o_proj · W_v in the channels of the latent, by plain sums.
TEST_F(LatentModel, TheOutputProjectionOfAttendedRowsHoldsTheValuesOfHeads) {
  const auto weights = [&](const std::string& name) {
    const std::string tensor = "model.layers.1.self_attn." + name;
    return test::formula_weights(tensor, golden_["tensors"][tensor].get<std::vector<std::uint64_t>>(), "deepseek_v3");
  };
  const std::vector<float> output = weights("o_proj.weight"), heads = weights("kv_b_proj.weight"),
                           found = source_->projection(1, 'o');
  constexpr std::size_t kHeads = 4, kPlain = 10, kValues = 14, kRank = 20, kShared = 8, kRow = kRank + kShared;
  ASSERT_EQ(found.size(), 48 * kHeads * kRow);
  for (std::size_t row = 0; row < 48; ++row)
    for (std::size_t head = 0; head < kHeads; ++head)
      for (std::size_t channel = 0; channel < kRow; ++channel) {
        double expected = 0;
        for (std::size_t value = 0; channel >= kShared && value < kValues; ++value)
          expected += double{output[(row * kHeads + head) * kValues + value]} *
                      heads[(head * (kPlain + kValues) + kPlain + value) * kRank + channel - kShared];
        ASSERT_NEAR(found[(row * kHeads + head) * kRow + channel], expected, 1e-6);
      }
  test::expect_error(ErrorCode::kUnsupported, "latent attention", [&] { (void)source_->projection(1, 'k'); });
}

/// An index that chooses 24 tokens, of 60.
TEST_F(LatentModel, AnIndexNeedsACacheThatHoldsEveryToken) {
  golden_ = read("glm_moe_dsa");
  open();
  const std::vector<float> expected = whole();
  for (const char* type : {"none", "f16"}) {
    Cache cache = test::cache_of(model_->config(), "full", {std::string("type=") + type});
    expect_near(nll_with(cache, 7), expected, type == std::string("none") ? 2e-5 : 1e-1);
  }
  for (const auto& [name, settings] :
       {std::pair<const char*, std::vector<std::string>>{"streaming", {"sinks=4", "cache_size=100"}},
        {"h2o", {"recent=4", "cache_size=100"}}}) {
    Cache cache = test::cache_of(model_->config(), name, settings);
    test::expect_error(ErrorCode::kUnsupported, "a text of more than 24 tokens (index_topk)",
                       [&] { (void)nll_with(cache, 1); });
  }
  tokens_.resize(24);
  Cache cache = test::cache_of(model_->config(), "streaming", {"sinks=4", "cache_size=100"});
  expect_near(nll_with(cache, 1), whole(), 2e-5);
  tokens_ = read("tokens").get<std::vector<std::int32_t>>();
  tokens_.resize(60);
  golden_["config"]["index_topk"] = 60;
  open();
  EXPECT_NE(whole(), expected) << "the index has no effect";
}

TEST_F(LatentModel, ThatSharesItsHeadDimHasNoOther) {
  golden_ = read("mistral4");
  golden_["config"]["head_dim"] = 8;
  test::expect_error(ErrorCode::kInput, "/head_dim: found 8, expected 18, the sum of", [&] { open(); });
}

/// Kimi K2.5 as published: a text part of a type of its own, with DeepSeek-V3's class, and YaRN as Transformers 4 wrote
/// it.
TEST_F(LatentModel, IsTheLanguagePartOfKimiK25) {
  Json text = golden_["config"];
  text["model_type"] = "kimi_k2";
  text["rope_scaling"] = text["rope_parameters"];
  text["rope_scaling"]["type"] = text["rope_scaling"]["rope_type"];
  text["rope_theta"] = text["rope_scaling"]["rope_theta"];
  for (const char* key : {"rope_type", "rope_theta"}) text["rope_scaling"].erase(key);
  text.erase("rope_parameters");
  std::vector<test::NamedTensor> tensors;
  for (const auto& [name, shape] : golden_["tensors"].items()) {
    const auto extents = shape.get<std::vector<std::uint64_t>>();
    tensors.push_back({"language_model." + name, extents, test::formula_weights(name, extents, "deepseek_v3")});
  }
  const Json config{{"model_type", "kimi_k25"}, {"text_config", text}};
  const std::vector<float> expected = whole();
  std::filesystem::create_directories(folder_ / "kimi");
  write_file_atomically(folder_ / "kimi" / "config.json", dump_json(config), false);
  write_file_atomically(folder_ / "kimi" / "model.safetensors", test::safetensors_bytes(tensors), false);
  source_ = ModelSource::open(folder_ / "kimi");
  model_ = std::make_unique<Model>(*source_, *backend_);
  EXPECT_EQ(model_->config().architecture, "deepseek_v3");
  EXPECT_EQ(whole(), expected);
}

TEST_F(LatentModel, TheSharedKeyHasAnEvenNumberOfChannels) {
  golden_ = read("mistral4");
  golden_["config"].erase("head_dim");
  golden_["config"]["qk_rope_head_dim"] = 7;
  test::expect_error(ErrorCode::kInput, "qk_rope_head_dim", [&] { open(); });
}

TEST_F(LatentModel, TheShareOfRotatedChannelsMustGiveTheSharedKey) {
  golden_ = read("mistral4");
  open();
  golden_["config"]["rope_parameters"]["partial_rotary_factor"] = 0.25;
  test::expect_error(ErrorCode::kInput, "qk_rope_head_dim", [&] { open(); });
}

TEST_F(LatentModel, AFactorOfTheScoresThatIsNoNumberIsRefused) {
  Json& rope = golden_["config"]["rope_parameters"];
  rope["attention_factor"] = 1;  // so that no other factor follows from the weight
  rope["mscale_all_dim"] = 1e200;
  test::expect_error(ErrorCode::kInput, "/rope_parameters/mscale_all_dim", [&] { open(); });
}

}  // namespace
}  // namespace kvs
