// SPDX-License-Identifier: Apache-2.0
// Rows in storage types: attention reads the decoded values, wherever a run of keys begins.
#include <gtest/gtest.h>

#include "tests/kernels/held_rows.h"

namespace kvs::test {
namespace {

constexpr std::size_t kHeads = 2, kWidth = 64;

class RowCodecs : public ::testing::TestWithParam<RowFormat> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
};

std::vector<float> attended(Backend& backend, const PastKv& past, std::size_t tokens) {
  const auto q = uploaded<4>(backend, random_values(2 * kHeads * tokens * kWidth, 1), {1, 2 * kHeads, tokens, kWidth});
  const auto k = uploaded<4>(backend, random_values(kHeads * tokens * kWidth, 2), {1, kHeads, tokens, kWidth}),
             v = uploaded<4>(backend, random_values(kHeads * tokens * kWidth, 3), {1, kHeads, tokens, kWidth});
  const OwnedOperand out(backend, tokens, 2 * kHeads * kWidth);
  backend.attention({.q = q.view(), .k = k.view(), .v = v.view(), .past = past, .scale = 0.5F}, out);
  return out.values();
}

// Few tokens read rows in place, many tokens pack them. Where few tokens read codes of rotated rows, their queries are
// rotated instead: the results are the same up to rounding.
TEST_P(RowCodecs, AttentionReadsWhatTheyStandFor) {
  constexpr std::size_t kRows = 320, kLate = 37;
  const CodedRows keys(*backend_, GetParam(), random_values(kHeads * kRows * kWidth, 4), kHeads, kWidth),
      values(*backend_, GetParam(), random_values(kHeads * kRows * kWidth, 5), kHeads, kWidth);
  const auto plain_k = keys.decoded(), plain_v = values.decoded();
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{20}}) {
    const auto expected = attended(*backend_, {plain_k.view(), plain_v.view(), kRows}, tokens),
               got = attended(*backend_, {keys.held(), values.held()}, tokens);
    const float tolerance = GetParam().turns() ? 1e-6F : 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], tolerance) << tokens << " tokens, value " << i;
    // Keys and values whose later rows are plain, from different rows on.
    PastKv parts(keys.held(), values.held());
    const auto late = [&](StoredRows& early, StoredRows& rest, const CodedRows& rows, std::size_t from) {
      auto plain = rows.decoded(from);
      early.count = from;
      rest = {plain.view(), kRows - from};
      return plain;
    };
    const auto late_k = late(parts.k, parts.late_k, keys, kRows - 64),
               late_v = late(parts.v, parts.late_v, values, GetParam().across_tokens ? 256 : kRows - kLate);
    EXPECT_EQ(attended(*backend_, parts, tokens), expected) << tokens << " tokens, two parts";
  }
}

TEST_P(RowCodecs, CodesOfARowDoNotDependOnItsNeighbours) {
  constexpr std::size_t kRows = 96;
  const auto values = random_values(kHeads * kRows * kWidth, 6);
  const CodedRows all(*backend_, GetParam(), values, kHeads, kWidth);
  const std::size_t unit = GetParam().across_tokens ? GetParam().group : 1, bytes = all.bytes().size() / kHeads;
  for (const std::size_t row : {std::size_t{0}, std::size_t{32}, kRows - unit}) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>((kRows + row) * kWidth);  // of head 1
    const CodedRows one(*backend_, GetParam(), {first, first + static_cast<std::ptrdiff_t>(unit * kWidth)}, 1, kWidth);
    const auto every = all.bytes();
    const auto at = every.begin() + static_cast<std::ptrdiff_t>(bytes + bytes / kRows * row);
    EXPECT_EQ(one.bytes(), std::vector<std::byte>(at, at + static_cast<std::ptrdiff_t>(one.bytes().size())));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RowCodecs, ::testing::ValuesIn(all_formats()));

TEST(RowCodecsTest, KeysAreRotatedAtTheirSlotsWhenTheyAreRead) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  constexpr std::size_t kRows = 300, kChunks = kWidth / 2;
  const CodedRows keys(*backend, {.kind = RowKind::kQ8_0}, random_values(kHeads * kRows * kWidth, 4), kHeads, kWidth),
      values(*backend, {.kind = RowKind::kF16}, random_values(kHeads * kRows * kWidth, 5), kHeads, kWidth);
  std::vector<float> cosine, sine;
  for (std::size_t i = 0; i < kRows * kChunks; ++i) {
    const double angle = static_cast<double>(i / kChunks) * std::pow(100.0, -static_cast<double>(i % kChunks) / 32.0);
    cosine.push_back(static_cast<float>(std::cos(angle)));
    sine.push_back(static_cast<float>(std::sin(angle)));
  }
  const auto cosines = uploaded<2>(*backend, cosine, {kRows, kChunks}),
             sines = uploaded<2>(*backend, sine, {kRows, kChunks});
  const RopeTable table{cosines.view(), sines.view()};
  const auto turned = keys.decoded(), plain_v = values.decoded();
  backend->rope(turned.view(), table, 0, RopeDirection::kForward, {});
  PastKv slots(keys.held(), values.held());
  slots.slots = table;
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{20}}) {
    const auto expected = attended(*backend, {turned.view(), plain_v.view(), kRows}, tokens),
               got = attended(*backend, slots, tokens);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << tokens << " tokens, " << i;
  }
}

TEST(RowCodecsTest, BytesOfEveryFormatByHand) {
  EXPECT_EQ(rows_bytes({.kind = RowKind::kQ8_0}, 64, 3), 3 * 2 * 34U);
  EXPECT_EQ(rows_bytes({.kind = RowKind::kQ4_0, .split = 24}, 24 + 40, 2), 2 * (18 + 2 * 18U));  // 24 and 40 of 32s
  EXPECT_EQ(rows_bytes({.kind = RowKind::kTurboKey3}, 128, 1), 128 / 8 * 3 + 2U);
  EXPECT_EQ(rows_bytes({.kind = RowKind::kKivi2, .group = 32}, 64, 1), 2 * (8 + 4U));
  EXPECT_EQ(rows_bytes({.kind = RowKind::kKivi4, .across_tokens = true, .group = 32}, 64, 33), 2 * 64 * (16 + 4U));
}

}  // namespace
}  // namespace kvs::test
