// SPDX-License-Identifier: Apache-2.0
// Groups of layers through the C functions, in both forms: streams against those of the programs' cache, against each
// other, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "calibrate/transform/codes.h"
#include "calibrate/transform/storage_blocks.h"
#include "export/codec/stream.h"
#include "tests/codec/open_codec.h"

namespace kvs {
namespace {

using test::Bytes;
using test::Codec;
using test::codec_group;
using test::kCodecChannels;
using test::kCodecShape;
using test::random_tokens;
using test::Tokens;
using ::testing::HasSubstr;

constexpr std::uint32_t kManyTokens = 600;  // tokens; more than are in f32 at once
constexpr std::size_t kSinkTokens = 3, kBlockTokens = 16, kHeadBytes = 48;

/// States of both layers, and their embeddings.
struct GroupTokens {
  explicit GroupTokens(std::size_t tokens, std::uint32_t seed = 1)
      : layers{random_tokens(tokens, seed), random_tokens(tokens, seed + 2)},
        x(test::random_values(tokens * kCodecChannels, seed + 4)) {}

  std::vector<kvs_codec_states> states(std::size_t first = 0, bool rotated = false) {
    return {layers[0].states(first, rotated), layers[1].states(first, rotated)};
  }
  kvs_codec_inputs inputs(std::size_t first = 0) const {
    return {.x = x.data() + first * kCodecChannels,
            .token_stride = kCodecChannels,
            .type = KVS_CODEC_F32,
            .channels = kCodecChannels};
  }
  Tokens<float> layers[2];
  std::vector<float> x;
};

kvs_codec_block group_block(std::uint32_t tokens, std::uint64_t first = 0, std::uint64_t outliers = 0) {
  const std::uint64_t coded = first - std::min<std::uint64_t>(first, kSinkTokens);
  return {.layer = 1, .tokens = tokens, .first_position = first, .coded_before = coded, .outliers_before = outliers};
}

class CodecGroups : public ::testing::TestWithParam<TransformForm> {
 protected:
  bool stored() const { return GetParam() == TransformForm::kStorage; }
  std::filesystem::path config(double threshold = 1e9) const {
    return test::write_codec_config(folder_, codec_group(GetParam(), threshold));
  }
  static Bytes encode(const Codec& codec, GroupTokens& tokens, std::uint32_t first, std::uint32_t count,
                      std::uint64_t outliers = 0) {
    const kvs_codec_inputs inputs = tokens.inputs(first);
    return codec.encode(group_block(count, first, outliers), tokens.states(first), &inputs);
  }
  /// Decodes tokens [first, first + count) of the stream into those of `read`, which begin where the stream does.
  static void decode(const Codec& codec, const Bytes& stream, std::uint32_t first, std::uint32_t count,
                     GroupTokens& read, bool rotated = false) {
    const kvs_codec_inputs inputs = read.inputs(first);
    codec.decode(stream, first, count, read.states(first, rotated), &inputs);
  }

  test::TemporaryDirectory folder_;
};

TEST_P(CodecGroups, HaveTheirLayersAndSizes) {
  const Codec codec(config());
  const kvs_codec_group group = codec.group();
  ASSERT_EQ(group.count, 2U);
  EXPECT_EQ(group.layers[0], 0U);
  EXPECT_EQ(group.layers[1], 1U);
  EXPECT_EQ(group.form, stored() ? KVS_CODEC_FORM_STORAGE : KVS_CODEC_FORM_RANDOM_ACCESS);
  EXPECT_EQ(group.channels, kCodecChannels);
  EXPECT_EQ(group.block_tokens, stored() ? kBlockTokens : 1);
  EXPECT_EQ(group.sinks, kSinkTokens);
  EXPECT_EQ(group.recent, kBlockTokens);
  EXPECT_EQ(group.sink_bytes, 2 * test::kCodecValues * sizeof(float));
  // 256 coefficients with 3 bits on average and a gain; a row of q8_0 for each head.
  EXPECT_EQ(group.token_bytes, stored() ? 0 : 2 + (3 * 256 - 1 + 7) / 8);
  EXPECT_EQ(group.outlier_bytes, stored() ? 0 : 4 + 2 * 4 * 34);
}

/// Codes the tokens after the sinks as the programs' cache does, in the pieces that are given.
class CachedCodes {
 public:
  explicit CachedCodes(const TransformLayer& layer)
      : products_(make_transform_products(*backend_, layer, kCodecShape)), codes_(make_transform_codes(products_)) {}

  void append(GroupTokens& tokens, std::size_t first, std::size_t count) {
    std::vector<TokenRows::Part> parts;
    std::vector<TokenStates> states;
    parts.reserve(2);
    for (Tokens<float>& layer : tokens.layers) {
      const auto part = [&](const std::vector<float>& of) {
        std::vector<float> values;
        for (std::size_t head = 0; head < test::kCodecHeads; ++head) {
          const auto from = of.begin() + static_cast<std::ptrdiff_t>((head * layer.tokens + first) * test::kCodecDim);
          values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(count * test::kCodecDim));
        }
        return test::uploaded<4>(*backend_, values, {1, test::kCodecHeads, count, test::kCodecDim});
      };
      parts.push_back({part(layer.k), part(layer.v)});
      states.push_back({parts.back().k.view(), parts.back().v.view()});
    }
    const auto inputs = inputs_of(tokens, first, count);
    (void)codes_->append(*backend_, states, 0, inputs.view());
    if (products_->entropy == nullptr) return;
    BackendCoding ops(*backend_);
    const LevelBlock block =
        encode_block(*products_, download(*backend_, row_values(ops, *products_, states, inputs.view()).k));
    const auto words = static_cast<std::uint32_t>(block.words.size());
    const std::size_t at = blocks.size();
    blocks.resize(at + 4 + 2 * block.words.size());
    std::memcpy(blocks.data() + at, &words, 4);
    std::memcpy(blocks.data() + at + 4, block.words.data(), 2 * block.words.size());
  }
  std::size_t bytes() const { return codes_->bytes().stored; }
  /// @return keys and values of a layer, [head, token, channel]
  std::pair<std::vector<float>, std::vector<float>> read(GroupTokens& tokens, std::size_t layer) {
    const auto inputs = inputs_of(tokens, kSinkTokens, codes_->count());
    const TokenRows::Part part = codes_->copy(*backend_, layer, 0, codes_->count(), inputs.view());
    return {download(*backend_, part.k.view()), download(*backend_, part.v.view())};
  }

  Bytes blocks;

 private:
  BackendTensor<float, 4> inputs_of(const GroupTokens& tokens, std::size_t first, std::size_t count) {
    const auto from = tokens.x.begin() + static_cast<std::ptrdiff_t>(first * kCodecChannels);
    return test::uploaded<4>(*backend_, {from, from + static_cast<std::ptrdiff_t>(count * kCodecChannels)},
                             {1, 1, count, kCodecChannels});
  }

  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
  std::shared_ptr<const TransformProducts> products_;
  std::unique_ptr<TransformCodes> codes_;
};

TEST_P(CodecGroups, HoldWhatTheCacheHolds) {
  constexpr std::uint32_t kCoded = 40, kAll = kCoded + kSinkTokens;
  const Codec codec(config());
  GroupTokens tokens(kAll), read(kAll, 1);
  const Bytes stream = encode(codec, tokens, 0, kAll);
  const kvs_codec_group group = codec.group();
  CachedCodes cached(codec_group(GetParam()));
  for (std::size_t first = 0; first < kCoded; first += kBlockTokens)
    cached.append(tokens, kSinkTokens + first, std::min<std::size_t>(kBlockTokens, kCoded - first));
  const std::size_t codes = group.head_bytes + kSinkTokens * group.sink_bytes;
  EXPECT_EQ(cached.bytes(), stream.size() - codes);
  if (stored()) {
    EXPECT_EQ(Bytes(stream.begin() + static_cast<std::ptrdiff_t>(codes), stream.end()), cached.blocks);
  }
  decode(codec, stream, 0, kAll, read);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const auto [k, v] = cached.read(tokens, layer);
    for (std::size_t n = 0; n < k.size(); ++n) {
      const std::size_t head = n / test::kCodecDim / kCoded, token = n / test::kCodecDim % kCoded,
                        at = (head * kAll + kSinkTokens + token) * test::kCodecDim + n % test::kCodecDim;
      ASSERT_EQ(read.layers[layer].k[at], k[n]) << layer << ' ' << n;
      ASSERT_EQ(read.layers[layer].v[at], v[n]) << layer << ' ' << n;
    }
    for (std::size_t n = 0; n < kSinkTokens * test::kCodecDim; ++n)  // in full
      ASSERT_EQ(read.layers[layer].k[n], tokens.layers[layer].k[n]);
  }
}

/// Streams of consecutive tokens, cut where blocks end, or anywhere with random access.
TEST_P(CodecGroups, HaveTheCodesOfOneStreamInPieces) {
  const Codec codec(config(60));
  GroupTokens tokens(kManyTokens), whole(kManyTokens), pieces(kManyTokens);
  const Bytes stream = encode(codec, tokens, 0, kManyTokens);
  const kvs_codec_group group = codec.group();
  Bytes sinks, codes;
  std::uint64_t outliers = 0;
  const std::uint32_t step = stored() ? 5 * kBlockTokens : 7;
  for (std::uint32_t first = 0, count = kSinkTokens + step; first < kManyTokens; first += count, count = step) {
    count = std::min(count, kManyTokens - first);
    const Bytes piece = encode(codec, tokens, first, count, outliers);
    const kvs_codec_stream content = codec.inspect(piece);
    EXPECT_EQ(content.tokens, count);
    outliers += content.outliers;
    const auto begin = piece.begin() + static_cast<std::ptrdiff_t>(group.head_bytes),
               at = begin + static_cast<std::ptrdiff_t>(content.sinks * group.sink_bytes),
               end = piece.end() - static_cast<std::ptrdiff_t>(content.outliers * group.outlier_bytes);
    sinks.insert(sinks.end(), begin, at);
    codes.insert(codes.end(), at, end);
    const kvs_codec_inputs inputs = tokens.inputs(first);
    codec.decode(piece, 0, count, pieces.states(first), &inputs);
  }
  sinks.insert(sinks.end(), codes.begin(), codes.end());
  EXPECT_EQ(codec.inspect(stream).outliers, outliers);
  if (!stored()) {
    EXPECT_GT(outliers, 0U);
    EXPECT_LT(outliers, kManyTokens / 2);
  }
  EXPECT_EQ(std::memcmp(stream.data() + kHeadBytes, sinks.data(), sinks.size()), 0);
  EXPECT_EQ(stream.size(), kHeadBytes + sinks.size() + outliers * group.outlier_bytes);
  decode(codec, stream, 0, kManyTokens, whole);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(whole.layers[layer].k, pieces.layers[layer].k);
    EXPECT_EQ(whole.layers[layer].v, pieces.layers[layer].v);
  }
}

TEST_P(CodecGroups, ReadAnyTokens) {
  const Codec codec(config(60));
  constexpr std::uint32_t kFew = 60, kFrom = 10;  // in the middle of a block
  GroupTokens tokens(kFrom + kFew), whole(kFew);
  const Bytes stream = encode(codec, tokens, kFrom, kFew);
  whole.x = {tokens.x.begin() + static_cast<std::ptrdiff_t>(kFrom * kCodecChannels), tokens.x.end()};
  decode(codec, stream, 0, kFew, whole, true);
  for (std::uint32_t first = 0; first < kFew; first += 3)
    for (std::uint32_t count = 0; first + count <= kFew; count += 7) {
      GroupTokens some(kFew);
      some.x = whole.x;
      for (Tokens<float>& layer : some.layers) layer = Tokens<float>(kFew);
      decode(codec, stream, first, count, some, true);
      for (std::size_t layer = 0; layer < 2; ++layer)
        for (std::size_t n = 0; n < some.layers[layer].k.size(); ++n) {
          const std::size_t token = n / test::kCodecDim % kFew;
          const bool within = token >= first && token < first + count;
          ASSERT_EQ(some.layers[layer].k[n], within ? whole.layers[layer].k[n] : 0) << first << ' ' << count;
          ASSERT_EQ(some.layers[layer].v[n], within ? whole.layers[layer].v[n] : 0) << first << ' ' << count;
        }
    }
}

TEST_P(CodecGroups, HaveTheSameBytesWithManyThreads) {
  const auto path = config(60);
  const Codec one(path), three(path, 3);
  GroupTokens tokens(kManyTokens), read(kManyTokens), again(kManyTokens);
  const Bytes stream = encode(one, tokens, 0, kManyTokens);
  EXPECT_EQ(encode(three, tokens, 0, kManyTokens), stream);
  decode(one, stream, 0, kManyTokens, read);
  decode(three, stream, 0, kManyTokens, again);
  EXPECT_EQ(read.layers[1].k, again.layers[1].k);
}

TEST_P(CodecGroups, RefuseWhatIsMissing) {
  const Codec codec(config());
  GroupTokens tokens(20);
  const std::vector<kvs_codec_states> states = tokens.states();
  const kvs_codec_block block = group_block(20);
  Bytes stream(1U << 20);
  std::size_t bytes = 0;
  const auto complaint = [&](const kvs_codec_inputs* inputs) {
    EXPECT_EQ(kvs_codec_encode_group(codec, &block, states.data(), inputs, stream.data(), stream.size(), &bytes),
              KVS_CODEC_ARGUMENT);
    return std::string(kvs_codec_error());
  };
  EXPECT_THAT(complaint(nullptr), HasSubstr("inputs: found NULL, expected the tokens' embeddings"));
  kvs_codec_inputs inputs = tokens.inputs();
  inputs.channels = 4;
  EXPECT_THAT(complaint(&inputs), HasSubstr("inputs: channels: found 4, expected 5"));
  inputs = tokens.inputs();
  inputs.type = 7;
  EXPECT_THAT(complaint(&inputs), HasSubstr("inputs: type: found 7"));
  inputs = tokens.inputs();
  tokens.x[2 * kCodecChannels] = HUGE_VALF;
  EXPECT_THAT(complaint(&inputs), HasSubstr("inputs: token 2, head 0: found NaN or infinity"));
  EXPECT_EQ(kvs_codec_encode(codec, &block, states.data(), stream.data(), stream.size(), &bytes), KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(),
              HasSubstr("found one of 2 that share rows, expected one alone: call kvs_codec_encode"));
  kvs_codec_layout layout{};
  EXPECT_EQ(kvs_codec_layout_of(codec, 1, &layout), KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("call kvs_codec_group_of"));
}

TEST_P(CodecGroups, RefuseOtherStreams) {
  const Codec codec(config());
  TransformLayer near = codec_group(GetParam());
  near.mean[0] = 0.5F;
  const Codec other(test::write_codec_config(folder_, near, "other"));
  GroupTokens tokens(30);
  const Bytes stream = encode(codec, tokens, 0, 30);
  const auto complaint = [&](const Bytes& of) {
    kvs_codec_stream content{};
    EXPECT_EQ(kvs_codec_inspect(codec, of.data(), of.size(), &content), KVS_CODEC_STREAM) << of.size();
    return std::string(kvs_codec_error());
  };
  for (std::size_t bytes = 1; bytes < stream.size(); ++bytes) {
    const Bytes cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_THAT(complaint(cut), HasSubstr("stream"));
  }
  Bytes longer = stream;
  longer.push_back(std::byte{0});
  EXPECT_THAT(complaint(longer), HasSubstr("bytes: found " + std::to_string(longer.size())));
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = stream;
    bytes[at] = std::byte{value};
    return complaint(bytes);
  };
  EXPECT_THAT(changed(4, 2), HasSubstr("version: found 2, expected 1"));
  EXPECT_THAT(changed(6, stored() ? 0 : 2), HasSubstr(stored() ? "rows: found 0, expected 2" : "rows: found 2"));
  EXPECT_THAT(changed(24, 1), HasSubstr("layer: found 1, expected 0"));
  EXPECT_THAT(changed(24, 2), HasSubstr("layer: found 2, expected one that the config codes"));
  EXPECT_THAT(changed(40, 2), HasSubstr("sinks: found 2, expected 3"));
  if (stored()) {
    EXPECT_THAT(changed(44, 1), HasSubstr("outliers: found 1, expected 0"));
  }
  EXPECT_THAT(complaint(encode(other, tokens, 0, 30)), HasSubstr("found a stream of another config"));
}

INSTANTIATE_TEST_SUITE_P(Forms, CodecGroups, ::testing::Values(TransformForm::kRandomAccess, TransformForm::kStorage));

class CodecStorage : public ::testing::Test {
 protected:
  /// One layer whose first four keys are coefficients, in steps, with a model of integers alone.
  static TransformLayer plain_layer() {
    TransformLayer layer = test::codec_layer(TransformRows::kLayer);
    layer.mean.assign(test::kCodecValues, 0);
    layer.scales = {20, 16, 12, 8};
    layer.weights.assign(4, 1);
    layer.bits.clear();
    layer.books.clear();
    layer.outliers = layer.threshold = 0;
    layer.recent = kBlockTokens;
    layer.analysis.assign(4 * test::kCodecValues, 0);
    layer.synthesis.assign(4 * test::kCodecValues, 0);
    for (std::size_t n = 0; n < 4; ++n) layer.analysis[n * test::kCodecValues + n] = layer.synthesis[n * 4 + n] = 1;
    EntropyModel model = laplacian_model();
    for (std::size_t at = 0; at < model.frequencies.size(); ++at)
      model.frequencies[at] = static_cast<std::uint16_t>(at % kLevels == 0 ? 4096 - 15 * 100 : 100);
    layer.entropy = std::make_shared<const EntropyModel>(std::move(model));
    return layer;
  }

  test::TemporaryDirectory folder_;
};

// The words are from tests/golden/make_storage_stream.py, an independent encoder.
TEST_F(CodecStorage, HasTheGoldenBlock) {
  const Codec codec(test::write_codec_config(folder_, plain_layer()));
  constexpr std::array<float, 12> kRows{4, -2, 4, -3, 0, 0, 0, 0, -2, 6, 69, -2};
  constexpr std::array<std::uint16_t, 5> kWords{22996, 60046, 62130, 6934, 31288};
  Tokens<float> tokens(3), read(3);
  for (std::size_t n = 0; n < kRows.size(); ++n) tokens.k[n / 4 * test::kCodecDim + n % 4] = kRows[n];
  const Bytes stream = codec.encode(test::block_of(3, kSinkTokens), tokens.states());
  ASSERT_EQ(stream.size(), kHeadBytes + 4 + sizeof(kWords));
  EXPECT_EQ(stream[6], std::byte{2});  // blocks
  EXPECT_EQ(stream[kHeadBytes], std::byte{kWords.size()});
  EXPECT_EQ(std::memcmp(stream.data() + kHeadBytes + 4, kWords.data(), sizeof(kWords)), 0);
  codec.decode(stream, 0, 3, read.states());
  EXPECT_EQ(read.k, tokens.k);
}

TEST_F(CodecStorage, RefusesDamagedBlocks) {
  const Codec codec(test::write_codec_config(folder_, codec_group(TransformForm::kStorage)));
  constexpr std::uint32_t kFew = 35;
  GroupTokens tokens(kFew), read(kFew);
  kvs_codec_inputs inputs = tokens.inputs();
  const Bytes stream = codec.encode(group_block(kFew), tokens.states(), &inputs);
  const std::size_t codes = kHeadBytes + kSinkTokens * codec.group().sink_bytes;
  std::mt19937 random(1);
  std::size_t refused = 0;
  constexpr int kRuns = 300;
  for (int n = 0; n < kRuns; ++n) {
    Bytes changed = stream;
    changed[codes + random() % (stream.size() - codes)] ^= std::byte{static_cast<std::uint8_t>(1U << random() % 8)};
    const int status =
        kvs_codec_decode_group(codec, changed.data(), changed.size(), 0, kFew, read.states().data(), &inputs);
    if (status == KVS_CODEC_OK) continue;
    EXPECT_EQ(status, KVS_CODEC_STREAM) << kvs_codec_error();
    ++refused;
  }
  EXPECT_GT(refused, kRuns * 9 / 10);
  Bytes lengths = stream;
  lengths[codes + 3] = std::byte{255};
  kvs_codec_stream content{};
  EXPECT_EQ(kvs_codec_inspect(codec, lengths.data(), lengths.size(), &content), KVS_CODEC_STREAM);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("stream: block 0: found "));
}

TEST_F(CodecStorage, SaysHowMuchSpaceAStreamTakes) {
  const Codec codec(test::write_codec_config(folder_, codec_group(TransformForm::kStorage)));
  GroupTokens tokens(40);
  for (Tokens<float>& layer : tokens.layers)
    for (float& value : layer.k) value *= 1e30F;  // the longest escapes, within kvs_codec_bound()
  const kvs_codec_inputs inputs = tokens.inputs();
  const kvs_codec_block block = group_block(40);
  const Bytes stream = codec.encode(block, tokens.states(), &inputs);
  std::size_t bytes = 0;
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{47}, stream.size() - 1}) {
    Bytes less(capacity + 1);
    EXPECT_EQ(kvs_codec_encode_group(codec, &block, tokens.states().data(), &inputs, less.data(), capacity, &bytes),
              KVS_CODEC_SPACE);
    EXPECT_GT(bytes, capacity);
    EXPECT_EQ(less.back(), std::byte{0});
  }
  EXPECT_EQ(bytes, stream.size());
}

TEST_F(CodecStorage, HasNoRowsToAttendTo) {
  const Codec codec(test::write_codec_config(folder_, plain_layer()));
  Tokens<float> tokens = random_tokens(8);
  const Bytes stream = codec.encode(test::block_of(8), tokens.states());
  const kvs_codec_queries queries{.q = tokens.k.data(),
                                  .head_stride = test::kCodecDim,
                                  .type = KVS_CODEC_F32,
                                  .heads = 2,
                                  .scale = 1,
                                  .softcap = 0};
  std::vector<float> out(2 * test::kCodecDim), sums(2);
  EXPECT_EQ(kvs_codec_attend(codec, stream.data(), stream.size(), 0, 8, &queries, out.data(), sums.data()),
            KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("found the storage form, expected rows by head"));
  kvs_codec_layout layout{};
  EXPECT_EQ(kvs_codec_layout_of(codec, 1, &layout), KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("found the storage form"));
}

}  // namespace
}  // namespace kvs
