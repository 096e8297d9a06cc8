// SPDX-License-Identifier: Apache-2.0
// Attention over codes against attention over the tokens that they decode to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/dtype.h"
#include "tests/codec/open_codec.h"

namespace kvs {
namespace {

using test::Bytes;
using test::Codec;
using test::Tokens;
using ::testing::HasSubstr;

constexpr std::size_t kGroup = 3, kQueryHeads = kGroup * test::kCodecHeads, kChannels = test::kCodecDim;
constexpr std::uint32_t kMost = 600;  // more than two runs of the kernel

struct Attended {
  explicit Attended(std::size_t heads = kQueryHeads) : out(heads * kChannels), log_sums(heads) {}
  std::vector<float> out, log_sums;
};

kvs_codec_queries queries_of(const std::vector<float>& q, float softcap = 0) {
  return {.q = q.data(),
          .head_stride = kChannels,
          .type = KVS_CODEC_F32,
          .heads = kQueryHeads,
          .scale = 0.3F,
          .softcap = softcap};
}

class CodecAttention : public ::testing::Test {
 protected:
  CodecAttention()
      : codec_(test::write_codec_config(folder_, test::codec_layer(TransformRows::kHead))),
        q_(test::random_values(kQueryHeads * kChannels, 5)) {}

  Bytes stream(std::uint64_t position) {
    Tokens<float> tokens = test::random_tokens(kMost);
    return codec_.encode(test::block_of(kMost, position), tokens.states());
  }
  Attended attended(const Bytes& stream, std::uint32_t first, std::uint32_t count, const kvs_codec_queries& queries,
                    int status = KVS_CODEC_OK) const {
    Attended found(queries.heads);
    EXPECT_EQ(kvs_codec_attend(codec_, stream.data(), stream.size(), first, count, &queries, found.out.data(),
                               found.log_sums.data()),
              status);
    return found;
  }
  /// Softmax over decoded tokens, in double.
  Attended expected(const Bytes& stream, std::uint32_t first, std::uint32_t count, float softcap = 0) const {
    Tokens<float> read(count);
    codec_.decode(stream, first, count, read.states(0, true));
    Attended result;
    for (std::size_t head = 0; head < kQueryHeads; ++head) {
      const std::size_t rows = head / kGroup * count * kChannels;
      std::vector<double> sums(kChannels + 1);
      for (std::size_t token = 0; token < count; ++token) {
        const std::size_t at = rows + token * kChannels;
        double score = 0;
        for (std::size_t c = 0; c < kChannels; ++c)
          score += 0.3 * static_cast<double>(q_[head * kChannels + c]) * static_cast<double>(read.k[at + c]);
        const double cap = static_cast<double>(softcap),
                     weight = std::exp(cap > 0 ? cap * std::tanh(score / cap) : score);
        for (std::size_t c = 0; c < kChannels; ++c) sums[c] += weight * static_cast<double>(read.v[at + c]);
        sums[kChannels] += weight;
      }
      result.log_sums[head] = static_cast<float>(std::log(sums[kChannels]));
      for (std::size_t c = 0; c < kChannels; ++c)
        result.out[head * kChannels + c] = static_cast<float>(sums[c] / sums[kChannels]);
    }
    return result;
  }
  /// f32: about 100 roundings of values below 4.
  static void expect_near(const Attended& found, const Attended& wanted) {
    constexpr double kTolerance = 2e-5;
    for (std::size_t n = 0; n < wanted.out.size(); ++n) ASSERT_NEAR(found.out[n], wanted.out[n], kTolerance) << n;
    for (std::size_t n = 0; n < wanted.log_sums.size(); ++n)
      ASSERT_NEAR(found.log_sums[n], wanted.log_sums[n], kTolerance) << n;
  }

  test::TemporaryDirectory folder_;
  Codec codec_;
  std::vector<float> q_;
};

TEST_F(CodecAttention, IsThatOverDecodedTokens) {
  const Bytes early = stream(0), later = stream(1000), beyond = stream((1U << 17) - 300);
  for (const Bytes* const some : {&early, &later, &beyond})
    for (const auto& [first, count] : {std::pair{0U, kMost},
                                       {0U, 1U},
                                       {0U, 2U},
                                       {0U, 3U},
                                       {0U, 4U},
                                       {1U, 30U},
                                       {2U, 1U},
                                       {3U, 1U},
                                       {3U, 300U},
                                       {100U, 257U},
                                       {kMost - 1, 1U}}) {
      SCOPED_TRACE(std::to_string(first) + " " + std::to_string(count));
      expect_near(attended(*some, first, count, queries_of(q_)), expected(*some, first, count));
    }
}

TEST_F(CodecAttention, JoinsByItsSums) {
  const Bytes all = stream(0);
  const Attended whole = attended(all, 0, kMost, queries_of(q_)), left = attended(all, 0, 70, queries_of(q_)),
                 right = attended(all, 70, kMost - 70, queries_of(q_));
  Attended joined;
  for (std::size_t head = 0; head < kQueryHeads; ++head) {
    const float share = 1 / (1 + std::exp(right.log_sums[head] - left.log_sums[head]));
    joined.log_sums[head] = left.log_sums[head] - std::log(share);
    for (std::size_t at = head * kChannels; at < (head + 1) * kChannels; ++at)
      joined.out[at] = share * left.out[at] + (1 - share) * right.out[at];
  }
  expect_near(joined, whole);
}

TEST_F(CodecAttention, TakesOtherQueries) {
  const Bytes all = stream(0);
  expect_near(attended(all, 0, 50, queries_of(q_, 0.7F)), expected(all, 0, 50, 0.7F));
  std::vector<std::uint16_t> narrow(2 * q_.size());  // with a stride
  for (std::size_t n = 0; n < q_.size(); ++n) {
    narrow[n / kChannels * 2 * kChannels + n % kChannels] = f32_to_bf16(q_[n]);
    q_[n] = bf16_to_f32(f32_to_bf16(q_[n]));
  }
  kvs_codec_queries queries = queries_of(q_);
  queries.q = narrow.data();
  queries.head_stride = 2 * kChannels;
  queries.type = KVS_CODEC_BF16;
  const Attended found = attended(all, 0, 50, queries), wanted = attended(all, 0, 50, queries_of(q_));
  EXPECT_EQ(found.out, wanted.out);
  EXPECT_EQ(found.log_sums, wanted.log_sums);
}

TEST_F(CodecAttention, RefusesWhatItCannotRead) {
  const Bytes all = stream(0);
  const auto complaint = [&](auto change, std::uint32_t first = 0, std::uint32_t count = 1) {
    kvs_codec_queries queries = queries_of(q_);
    change(queries);
    (void)attended(all, first, count, queries, KVS_CODEC_ARGUMENT);
    return std::string(kvs_codec_error());
  };
  const auto none = [](kvs_codec_queries&) {};
  EXPECT_THAT(complaint([](auto& queries) { queries.heads = 3; }),
              HasSubstr("queries: heads: found 3, expected a multiple of 2, at most 512"));
  EXPECT_THAT(complaint([](auto& queries) { queries.heads = 514; }), HasSubstr("queries: heads: found 514"));
  EXPECT_THAT(complaint([](auto& queries) { queries.q = nullptr; }), HasSubstr("queries: q: found NULL"));
  EXPECT_THAT(complaint([](auto& queries) { queries.type = 3; }), HasSubstr("queries: type: found 3"));
  EXPECT_THAT(complaint([](auto& queries) { queries.softcap = -1; }), HasSubstr("queries: softcap"));
  EXPECT_THAT(complaint(none, 0, 0), HasSubstr("tokens: found 0 from 0 on, expected at least 1 of 600"));
  EXPECT_THAT(complaint(none, kMost, 1), HasSubstr("tokens: found 1 from 600 on"));
  const Codec by_layer(test::write_codec_config(folder_, test::codec_layer(TransformRows::kLayer), "layer"));
  Tokens<float> tokens = test::random_tokens(4);
  const Bytes rows = by_layer.encode(test::block_of(4), tokens.states());
  const kvs_codec_queries queries = queries_of(q_);
  Attended found;
  EXPECT_EQ(
      kvs_codec_attend(by_layer, rows.data(), rows.size(), 0, 1, &queries, found.out.data(), found.log_sums.data()),
      KVS_CODEC_ARGUMENT);
  EXPECT_THAT(kvs_codec_error(), HasSubstr("rows: found rows by layer, expected rows by head"));
}

}  // namespace
}  // namespace kvs
