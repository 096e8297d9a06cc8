// SPDX-License-Identifier: Apache-2.0
// The codec's C functions: streams against our cache, against each other, and refusals.
#include "kvspectrum/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "io/file.h"
#include "kernels/rope_rows.h"
#include "model/rope_angles.h"
#include "tests/codec/open_codec.h"

namespace kvs {
namespace {

using test::block_of;
using test::Bytes;
using test::Codec;
using test::random_tokens;
using test::Tokens;
using ::testing::HasSubstr;

constexpr std::size_t kHeads = test::kCodecHeads, kDim = test::kCodecDim;
constexpr std::uint32_t kLayer = test::kCodecLayer, kTokens = 40;

class CodecTest : public ::testing::TestWithParam<TransformRows> {
 protected:
  /// Thresholds at which some tokens are outliers.
  TransformLayer layer() const { return test::codec_layer(GetParam(), 30); }
  std::filesystem::path config() const { return test::write_codec_config(folder_, layer()); }
  Tokens<float> decoded(const Codec& codec, const Bytes& stream, std::uint32_t tokens, bool rotated = false) {
    Tokens<float> states(tokens);
    codec.decode(stream, 0, tokens, states.states(0, rotated));
    return states;
  }
  /// Encodes tokens one by one. @return the streams, joined without their heads and outliers
  Bytes codes_of_single(const Codec& codec, Tokens<float>& tokens, Tokens<float>& read, std::uint64_t& outliers) {
    const kvs_codec_layout layout = codec.layout();
    Bytes codes;
    kvs_codec_block block = block_of(1);
    for (std::size_t token = 0; token < tokens.tokens; ++token) {
      block.first_position = token;
      block.coded_before = token - std::min<std::size_t>(token, layout.sinks);
      block.outliers_before = outliers;
      const Bytes stream = codec.encode(block, tokens.states(token));
      outliers += codec.inspect(stream).outliers;
      codec.decode(stream, 0, 1, read.states(token));
      const std::size_t begin = layout.head_bytes, size = token < layout.sinks ? layout.sink_bytes : layout.token_bytes;
      codes.insert(codes.end(), stream.begin() + static_cast<std::ptrdiff_t>(begin),
                   stream.begin() + static_cast<std::ptrdiff_t>(begin + size));
    }
    return codes;
  }

  test::TemporaryDirectory folder_;
};

TEST_P(CodecTest, ABlockHasTheBitsOfItsTokens) {
  const Codec codec(config());
  constexpr std::uint32_t kMany = 600;  // more than are in f32 at once
  Tokens<float> tokens = random_tokens(kMany), single(kMany);
  const Bytes stream = codec.encode(block_of(kMany), tokens.states());
  std::uint64_t outliers = 0;
  const Bytes codes = codes_of_single(codec, tokens, single, outliers);
  EXPECT_EQ(codec.inspect(stream).outliers, outliers);
  if (GetParam() == TransformRows::kLayer) {
    EXPECT_GT(outliers, 0U);
    EXPECT_LT(outliers, kMany / 2);
    EXPECT_EQ(std::memcmp(codes.data(), stream.data() + codec.layout().head_bytes, codes.size()), 0);
  }
  const Tokens<float> whole = decoded(codec, stream, kMany);
  EXPECT_EQ(whole.k, single.k);
  EXPECT_EQ(whole.v, single.v);
}

TEST_P(CodecTest, ReadsAnyTokens) {
  const Codec codec(config());
  Tokens<float> tokens = random_tokens(kTokens);
  const Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  const Tokens<float> whole = decoded(codec, stream, kTokens, true);
  for (std::uint32_t first = 0; first < kTokens; first += 3)
    for (std::uint32_t count = 0; first + count <= kTokens; count += 7) {
      Tokens<float> some(kTokens);
      codec.decode(stream, first, count, some.states(first, true));
      for (std::size_t n = 0; n < some.k.size(); ++n) {
        const std::size_t token = n / kDim % kTokens;
        const bool within = token >= first && token < first + count;
        ASSERT_EQ(some.k[n], within ? whole.k[n] : 0) << first << ' ' << count << ' ' << n;
        ASSERT_EQ(some.v[n], within ? whole.v[n] : 0) << first << ' ' << count << ' ' << n;
      }
    }
}

TEST_P(CodecTest, HoldsWhatTheCacheHolds) {
  const auto backend = make_backend("cpu", DType::kF32, 2);
  Tokens<float> tokens = random_tokens(kTokens);
  const auto cache = make_transform_cache(make_transform_products(*backend, layer(), test::kCodecShape));
  const auto k = test::uploaded<4>(*backend, tokens.k, {1, kHeads, kTokens, kDim}),
             v = test::uploaded<4>(*backend, tokens.v, {1, kHeads, kTokens, kDim}),
             q = test::uploaded<4>(*backend, tokens.k, {1, kHeads, kTokens, kDim});
  const RopeAngles angles = rope_angles({.theta = 1e4, .rotary_dim = kDim}, 16);
  std::vector<float> cosines(kTokens * kDim / 2), sines(cosines.size());
  write_rope_rows(angles.frequencies, angles.factor, 0, kTokens, cosines.data(), sines.data());
  const auto cosine = test::uploaded<2>(*backend, cosines, {kTokens, kDim / 2}),
             sine = test::uploaded<2>(*backend, sines, {kTokens, kDim / 2});
  const OperandBuffer out(*backend, kTokens, kHeads * kDim);
  LayerStates states{.backend = *backend,
                     .layer = kLayer,
                     .first_position = 0,
                     .rope = {cosine.view(), sine.view()},
                     .x = {},
                     .q = q.view(),
                     .k = k.view(),
                     .v = v.view()};
  cache->attend(states, out.get());  // which overwrites the states with those that it stores, rotated

  const Codec codec(config());
  const Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  const Tokens<float> read = decoded(codec, stream, kTokens, true);
  EXPECT_EQ(read.k, download(*backend, k.view()));
  EXPECT_EQ(read.v, download(*backend, v.view()));
  const kvs_codec_layout layout = codec.layout();
  const std::size_t in_full = layout.sinks * layout.sink_bytes / 2;  // the cache counts 16 bits for a value
  EXPECT_EQ(cache->bytes().stored, stream.size() - layout.head_bytes - in_full);
}

TEST_P(CodecTest, TakesKeysAfterRope) {
  const Codec codec(config());
  constexpr std::uint32_t kSinks = 3;  // which are stored without loss
  Tokens<float> tokens = random_tokens(kSinks), rotated(kSinks), back(kSinks);
  codec.decode(codec.encode(block_of(kSinks), tokens.states()), 0, kSinks, rotated.states(0, true));
  for (std::size_t position = 0; position < kSinks; ++position) {  // chunk 0 turns by 1 radian a token
    const double a = static_cast<double>(tokens.k[position * kDim]),
                 b = static_cast<double>(tokens.k[position * kDim + kDim / 2]), angle = static_cast<double>(position);
    EXPECT_NEAR(rotated.k[position * kDim], a * std::cos(angle) - b * std::sin(angle), 1e-6);
  }
  EXPECT_EQ(rotated.v, tokens.v);
  codec.decode(codec.encode(block_of(kSinks), rotated.states(0, true)), 0, kSinks, back.states());
  for (std::size_t n = 0; n < tokens.k.size(); ++n) EXPECT_NEAR(back.k[n], tokens.k[n], 1e-6);
}

TEST_P(CodecTest, TakesOtherTypesAndLayouts) {
  const Codec codec(config());
  Tokens<float> tokens = random_tokens(kTokens);
  Tokens<std::uint16_t> narrow(kTokens);  // [token, head, channel]
  for (std::size_t n = 0; n < tokens.k.size(); ++n) {
    const std::size_t head = n / kDim / kTokens, token = n / kDim % kTokens,
                      at = (token * kHeads + head) * kDim + n % kDim;
    narrow.k[at] = f32_to_bf16(tokens.k[n]);
    narrow.v[at] = f32_to_bf16(tokens.v[n]);
    tokens.k[n] = bf16_to_f32(narrow.k[at]);
    tokens.v[n] = bf16_to_f32(narrow.v[at]);
  }
  kvs_codec_states states = narrow.states();
  states.k_token_stride = states.v_token_stride = kHeads * kDim;
  states.k_head_stride = states.v_head_stride = kDim;
  const Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  EXPECT_EQ(codec.encode(block_of(kTokens), states), stream);

  const Tokens<float> read = decoded(codec, stream, kTokens);
  for (const std::uint32_t type : {KVS_CODEC_BF16, KVS_CODEC_F16}) {
    states.type = type;
    codec.decode(stream, 0, kTokens, states);
    for (std::size_t n = 0; n < read.v.size(); ++n) {
      const std::size_t head = n / kDim / kTokens, token = n / kDim % kTokens;
      const std::uint16_t found = narrow.v[(token * kHeads + head) * kDim + n % kDim];
      ASSERT_EQ(found, type == KVS_CODEC_F16 ? f32_to_f16(read.v[n]) : f32_to_bf16(read.v[n])) << n;
    }
  }
}

TEST_P(CodecTest, ManyThreadsGiveTheSameBytes) {
  const auto path = config();
  const Codec one(path), three(path, 3);
  Tokens<float> tokens = random_tokens(kTokens * 16);
  const kvs_codec_block block = block_of(kTokens * 16);
  const Bytes stream = one.encode(block, tokens.states());
  EXPECT_EQ(three.encode(block, tokens.states()), stream);
  std::vector<Bytes> streams(4);
  std::vector<std::thread> threads;
  threads.reserve(streams.size());
  for (Bytes& own : streams) threads.emplace_back([&] { own = one.encode(block, tokens.states()); });
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& own : streams) EXPECT_EQ(own, stream);
}

TEST_P(CodecTest, AStreamOfAnotherLengthIsRefused) {
  const Codec codec(config());
  Tokens<float> tokens = random_tokens(kTokens), read(kTokens);
  Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  const kvs_codec_states states = read.states();
  for (std::size_t size = 0; size < stream.size(); ++size) {
    const Bytes cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(kvs_codec_decode(codec, cut.data(), cut.size(), 0, 1, &states),
              size == 0 ? KVS_CODEC_ARGUMENT : KVS_CODEC_STREAM);
  }
  stream.resize(stream.size() + 1);
  EXPECT_EQ(kvs_codec_decode(codec, stream.data(), stream.size(), 0, 1, &states), KVS_CODEC_STREAM);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("stream: bytes: found"));
}

TEST_P(CodecTest, AForeignStreamIsRefused) {
  const Codec codec(config());
  TransformLayer other = layer();
  other.books.front() += 1;
  const Codec another(test::write_codec_config(folder_, other, "other"));
  Tokens<float> tokens = random_tokens(kTokens), read(kTokens);
  const Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  const auto complaint = [&](const kvs_codec* reader, std::size_t at, std::uint8_t value) {
    Bytes changed = stream;
    if (at < changed.size()) changed[at] = std::byte{value};
    const kvs_codec_states states = read.states();
    EXPECT_EQ(kvs_codec_decode(reader, changed.data(), changed.size(), 0, 1, &states), KVS_CODEC_STREAM) << at;
    return std::string(kvs_codec_error());
  };
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(complaint(another, kNone, 0), HasSubstr("a stream of another config"));
  EXPECT_THAT(complaint(codec, 0, 'X'), HasSubstr("found another format, expected KVSC"));
  EXPECT_THAT(complaint(codec, 4, 2), HasSubstr("version: found 2, expected 1"));
  EXPECT_THAT(complaint(codec, 6, 7), HasSubstr("rows: found 7"));
  EXPECT_THAT(complaint(codec, 24, 2), HasSubstr("layer: found 2, expected one that the config codes"));
  EXPECT_THAT(complaint(codec, 31, 255), HasSubstr("tokens: found"));
  EXPECT_THAT(complaint(codec, 32, 1), HasSubstr("sinks: found 3, expected 2"));
  EXPECT_THAT(complaint(codec, 44, 255), HasSubstr("outliers: found"));
}

INSTANTIATE_TEST_SUITE_P(Rows, CodecTest, ::testing::Values(TransformRows::kLayer, TransformRows::kHead));

class CodecRefusals : public ::testing::Test {
 protected:
  CodecRefusals() : config_(test::write_codec_config(folder_, test::codec_layer(TransformRows::kLayer))) {}

  /// @return the status and the text of opening `config`
  std::pair<int, std::string> opened(const std::filesystem::path& config,
                                     const std::function<void(kvs_codec_options&)>& change = {},
                                     std::uint32_t version = KVS_CODEC_VERSION) {
    const std::vector<std::uint32_t> heads(3, kHeads), dims(3, kDim);
    kvs_codec_options options{.layers = 3,
                              .kv_heads = heads.data(),
                              .head_dim = dims.data(),
                              .sha256 = nullptr,
                              .threads = 1,
                              .device = nullptr};
    if (change) change(options);
    kvs_codec* codec = nullptr;
    const int status = kvs_codec_open(version, config.c_str(), &options, &codec);
    kvs_codec_close(codec);
    return {status, status == KVS_CODEC_OK ? "" : kvs_codec_error()};
  }
  void expect_refused(const std::pair<int, std::string>& found, int status, const std::string& part) {
    EXPECT_EQ(found.first, status) << found.second;
    EXPECT_THAT(found.second, HasSubstr(part));
  }

  test::TemporaryDirectory folder_;
  std::filesystem::path config_;
};

TEST_F(CodecRefusals, OfAnotherModel) {
  const std::vector<std::uint32_t> four(3, 4);
  expect_refused(opened(config_, [](kvs_codec_options& options) { options.layers = 4; }), KVS_CODEC_MODEL,
                 "t.json: model.layers: found 3, expected 4");
  expect_refused(opened(config_, [&](kvs_codec_options& options) { options.kv_heads = four.data(); }), KVS_CODEC_MODEL,
                 "model.kv_heads of layer 0: found 2, expected 4");
  expect_refused(opened(config_, [&](kvs_codec_options& options) { options.head_dim = four.data(); }), KVS_CODEC_MODEL,
                 "model.head_dim of layer 0: found 32, expected 4");
  expect_refused(opened(config_, [](kvs_codec_options& options) { options.sha256 = "b"; }), KVS_CODEC_MODEL,
                 "model.sha256: found aaa");
  EXPECT_EQ(opened(config_).first, KVS_CODEC_OK);
}

TEST_F(CodecRefusals, OfWhatTheLibraryDoesNotKnow) {
  expect_refused(opened(config_, {}, 2), KVS_CODEC_ARGUMENT, "version: found 2, expected 1");
  expect_refused(opened(config_, [](kvs_codec_options& options) { options.device = "cuda"; }), KVS_CODEC_ARGUMENT,
                 "options: device: found cuda, expected cpu");
  EXPECT_EQ(kvs_codec_version(), static_cast<std::uint32_t>(KVS_CODEC_VERSION));
}

TEST_F(CodecRefusals, OfDamagedConfigs) {
  expect_refused(opened(folder_ / "none.json"), KVS_CODEC_CONFIG, "none.json");
  std::string tensors = test::read_all(folder_ / "t.safetensors");
  tensors.back() = static_cast<char>(tensors.back() ^ 1);
  folder_.write("t.safetensors", tensors);
  expect_refused(opened(config_), KVS_CODEC_CONFIG, "t.json: /files/0/sha256: found");
}

TEST_F(CodecRefusals, OfBlocksAndStates) {
  const Codec codec(config_);
  Tokens<float> tokens = random_tokens(kTokens);
  Bytes stream(1U << 20);
  std::size_t bytes = 0;
  const auto complaint = [&](const kvs_codec_block& block, const kvs_codec_states& states, int status) {
    EXPECT_EQ(kvs_codec_encode(codec, &block, &states, stream.data(), stream.size(), &bytes), status);
    return std::string(kvs_codec_error());
  };
  kvs_codec_block block = block_of(kTokens);
  block.layer = 0;
  EXPECT_THAT(complaint(block, tokens.states(), KVS_CODEC_ARGUMENT), HasSubstr("layer: found 0, expected one that"));
  EXPECT_THAT(complaint(block_of(0), tokens.states(), KVS_CODEC_ARGUMENT), HasSubstr("tokens: found 0"));
  EXPECT_THAT(complaint(block_of(kTokens, 1U << 24), tokens.states(), KVS_CODEC_ARGUMENT),
              HasSubstr("first_position: found 16777216"));
  kvs_codec_states states = tokens.states();
  states.type = 9;
  EXPECT_THAT(complaint(block_of(kTokens), states, KVS_CODEC_ARGUMENT), HasSubstr("states: type: found 9"));
  states = tokens.states();
  states.v = nullptr;
  EXPECT_THAT(complaint(block_of(kTokens), states, KVS_CODEC_ARGUMENT), HasSubstr("states: v: found NULL"));
  tokens.k[kDim * 5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(complaint(block_of(kTokens), tokens.states(), KVS_CODEC_ARGUMENT),
              HasSubstr("k: token 5, head 0: found NaN or infinity"));
  EXPECT_EQ(kvs_codec_encode(codec, nullptr, &states, stream.data(), stream.size(), &bytes), KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("block: found NULL"));
}

TEST_F(CodecRefusals, OfLittleSpace) {
  // A threshold of 0 makes outliers of as many tokens as the budget has.
  const Codec codec(test::write_codec_config(folder_, test::codec_layer(TransformRows::kLayer, 0, 0.2), "full"));
  Tokens<float> tokens = random_tokens(kTokens);
  const kvs_codec_block block = block_of(kTokens);
  const kvs_codec_states states = tokens.states();
  const Bytes stream = codec.encode(block, states);  // within kvs_codec_bound()
  EXPECT_NEAR(codec.inspect(stream).outliers, 0.2 * kTokens, 3);
  Bytes small(stream.size());
  std::size_t bytes = 0;
  EXPECT_EQ(kvs_codec_encode(codec, &block, &states, small.data(), small.size(), &bytes), KVS_CODEC_OK);
  EXPECT_EQ(small, stream);
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{47}, stream.size() - 1}) {
    Bytes less(capacity + 1);
    EXPECT_EQ(kvs_codec_encode(codec, &block, &states, less.data(), capacity, &bytes), KVS_CODEC_SPACE);
    EXPECT_GT(bytes, capacity);
    EXPECT_EQ(less.back(), std::byte{0});
  }
  EXPECT_THAT(kvs_codec_error(), HasSubstr("capacity: found"));
}

TEST_F(CodecRefusals, OfOutliersThatAreNoneOfTheTokens) {
  const Codec codec(test::write_codec_config(folder_, test::codec_layer(TransformRows::kLayer, 0, 0.2), "full"));
  Tokens<float> tokens = random_tokens(kTokens);
  const Bytes stream = codec.encode(block_of(kTokens), tokens.states());
  const kvs_codec_layout layout = codec.layout();
  const std::size_t at =
      layout.head_bytes + layout.sinks * layout.sink_bytes + (kTokens - layout.sinks) * layout.token_bytes;
  for (const std::uint8_t token : {0, 2, 39, 40, 255}) {
    Bytes changed = stream;
    changed[at] = std::byte{token};
    kvs_codec_stream content{};
    EXPECT_EQ(kvs_codec_inspect(codec, changed.data(), changed.size(), &content), KVS_CODEC_STREAM) << +token;
    EXPECT_THAT(kvs_codec_error(), HasSubstr("stream: outlier "));
  }
}

}  // namespace
}  // namespace kvs
