// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

Json read_json(const std::string& name) {
  const std::filesystem::path path = test::golden_path("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

/// The golden Llama 4: layers 0 to 2 attend within chunks of 48 tokens, layer 3 to all tokens.
class Llama4 : public testing::Test {
 protected:
  static constexpr std::size_t kChunk = 48, kChunkLayers = 3;

  void SetUp() override {
    const Json golden = read_json("llama4");
    tokens_ = read_json("tokens").get<std::vector<std::int32_t>>();
    tokens_.resize(150);
    test::write_formula_model(folder_ / "model", golden["config"], golden["tensors"]);
    source_ = ModelSource::open(folder_ / "model");
    model_ = std::make_unique<Model>(*source_, *backend_);
    decoder_ = std::make_unique<Decoder>(*model_);
  }

  /// Returns the NLL of the tokens from `first` on, which follow those in the cache.
  std::vector<float> pass(Cache& cache, std::size_t first, std::size_t count, std::size_t members = 1) {
    ResidualStream hidden = decoder_->embed(std::span(tokens_).subspan(first, count), first, tokens_.size());
    if (members > 1) hidden = decoder_->repeat(hidden, members);
    decoder_->advance(hidden, model_->config().layers(), nullptr, &cache);
    std::vector<std::int32_t> targets(count, -1);
    for (std::size_t n = 0; n < count && first + n + 1 < tokens_.size(); ++n) targets[n] = tokens_[first + n + 1];
    return decoder_->nll(hidden, targets);
  }

  /// Returns the bytes of the full caches with `rows` rows in each chunked layer and `all` in the other.
  std::size_t bytes(std::size_t rows, std::size_t all) const {
    const AttentionConfig& attention = model_->config().first_attention();
    return (kChunkLayers * rows + all) * attention.cache_values_per_token() * CacheBytes::kStoredValue;
  }

  test::TemporaryDirectory folder_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
};

TEST_F(Llama4, LayersHaveChunksOrATemperature) {
  const ModelConfig& config = model_->config();
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const AttentionConfig& attention = config.layer[layer].attention;
    const bool chunked = layer < kChunkLayers;
    EXPECT_EQ(attention.chunk, chunked ? kChunk : 0) << layer;
    EXPECT_EQ(attention.unit_norms, chunked) << layer;
    EXPECT_EQ(attention.temperature.scale > 0, !chunked) << layer;
    EXPECT_EQ(config.layer[layer].feed_forward.is_sparse(), layer % 2 == 1) << layer;
  }
  EXPECT_EQ(config.unrotated_layers(), 1U);
  EXPECT_EQ(config.cached_tokens(1000), 1000 + kChunkLayers * kChunk);
}

TEST_F(Llama4, GroupsOfAnySizeEqualOnePass) {
  const std::vector<float> whole = document_nll(*decoder_, tokens_);
  for (const std::size_t group : {1, 7, 48, 50, 131}) {
    Cache cache = test::cache_of(model_->config(), "full");
    for (std::size_t first = 0; first + 1 < tokens_.size(); first += group) {
      const std::vector<float> found = pass(cache, first, std::min(group, tokens_.size() - first));
      for (std::size_t n = 0; n < found.size() && first + n < whole.size(); ++n)
        ASSERT_NEAR(found[n], whole[first + n], 2e-5) << group << " " << first + n;
    }
  }
}

TEST_F(Llama4, ABatchBehindAPrefixEqualsOnePass) {
  const std::vector<float> whole = document_nll(*decoder_, tokens_);
  for (const std::size_t prefix : {20, 48, 60, 96}) {
    Cache cache = test::cache_of(model_->config(), "full");
    (void)pass(cache, 0, prefix);
    const std::size_t rest = tokens_.size() - prefix;
    for (int repetition = 0; repetition < 2; ++repetition) {  // the first one leaves the prefix as it is
      const std::vector<float> found = pass(cache, prefix, rest, 2);
      for (std::size_t n = 0; n < found.size(); ++n)
        ASSERT_NEAR(found[n], n % rest + 1 < rest ? whole[prefix + n % rest] : 0, 2e-5) << prefix << " " << n;
    }
  }
}

TEST_F(Llama4, CachesHoldTheLastTokensChunk) {
  Cache cache = test::cache_of(model_->config(), "full");
  for (std::size_t first = 0; first < 140; first += 7) {
    (void)pass(cache, first, 7);
    EXPECT_EQ(cache.bytes().stored, bytes((first + 6) % kChunk + 1, first + 7)) << first;
    const bool crosses = (first + 6) / kChunk > first / kChunk;
    EXPECT_EQ(cache.peak().stored, bytes(crosses ? kChunk : (first + 6) % kChunk + 1, first + 7)) << first;
  }
}

TEST_F(Llama4, AMethodKeepsTheChunksAsTheyAre) {
  Cache cache = test::cache_of(model_->config(), "streaming", {"sinks=4", "cache_size=64"});
  for (std::size_t token = 0; token < tokens_.size(); ++token) (void)pass(cache, token, 1);
  EXPECT_EQ(cache.bytes().stored, bytes((tokens_.size() - 1) % kChunk + 1, 63));  // the next token's is the 64th
}

}  // namespace
}  // namespace kvs
