// SPDX-License-Identifier: Apache-2.0
// The trellis codec: the codes, their number of bytes, and a check that no other path through the trellis is better.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/held_rows.h"

namespace kvs::test {
namespace {

constexpr std::size_t kStates = 256;

/// Books of random values, and for each value its bits and weight.
std::vector<float> tables(const std::vector<unsigned>& bits, const std::vector<float>& weights) {
  std::vector<float> all = random_values(kTrellisBooks, 21);
  std::fill_n(all.begin(), kStates, 0.0F);
  for (std::size_t n = 0; n < bits.size(); ++n)
    all.insert(all.end(), {0.25F * static_cast<float>(n), 2, weights[n], static_cast<float>(bits[n])});
  return all;
}

RowFormat format_of(const std::vector<unsigned>& bits) {
  std::uint32_t all = 0;
  for (const unsigned of_value : bits) all += of_value;
  return {.kind = RowKind::kTrellis, .group = all};
}

class TrellisRows : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
};

TEST_F(TrellisRows, TakeTheirBitsAndAGain) {
  const std::vector<unsigned> bits{3, 0, 8, 1, 2, 5};
  const CodedRows rows(*backend_, format_of(bits), random_values(7 * 6, 1), 1, 6, tables(bits, std::vector(6, 1.0F)));
  EXPECT_EQ(rows.bytes().size(), 7 * (2 + 3));  // 19 bits
}

TEST_F(TrellisRows, ValuesWithoutBitsAreTheirOffsets) {
  const std::vector<unsigned> bits{0, 4, 0};
  const CodedRows rows(*backend_, format_of(bits), random_values(3 * 3, 2), 1, 3, tables(bits, {1, 1, 1}));
  const std::vector<float> held = download(*backend_, rows.decoded().view());
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(held[3 * row], 0);
    EXPECT_EQ(held[3 * row + 2], 0.5F);
  }
}

// All 2⁹ streams of a row: the codec's stream has the least weighted error.
TEST_F(TrellisRows, AreTheBestOfAllStreams) {
  const std::vector<unsigned> bits{2, 1, 3, 2, 1};
  const std::vector<float> weights{1, 0.5F, 0.25F, 1, 0.1F};
  const std::vector<float> all = tables(bits, weights), x = random_values(20 * 5, 3);
  const CodedRows rows(*backend_, format_of(bits), x, 1, 5, all);
  const std::vector<float> held = download(*backend_, rows.decoded().view());
  const std::vector<std::byte> bytes = rows.bytes();
  const auto cost = [&](std::size_t row, std::size_t n, float value) {
    const double error = static_cast<double>(x[row * 5 + n]) - static_cast<double>(value);
    return static_cast<double>(weights[n]) * error * error;
  };
  for (std::size_t row = 0; row < 20; ++row) {
    const auto low = std::to_integer<unsigned>(bytes[row * 4]), high = std::to_integer<unsigned>(bytes[row * 4 + 1]);
    const float gain = f16_to_f32(static_cast<std::uint16_t>(low | high << 8));
    double found = 0, least = HUGE_VAL;
    for (std::size_t n = 0; n < 5; ++n) found += cost(row, n, held[row * 5 + n]);
    for (unsigned stream = 0; stream < 512; ++stream) {
      unsigned left = 9;
      double sum = 0;
      for (std::size_t n = 0; n < 5; ++n) {
        left -= bits[n];
        const unsigned state = ((high << 9 | stream) >> left) % kStates;
        sum += cost(row, n, 0.25F * static_cast<float>(n) + gain * 2 * all[bits[n] * kStates + state]);
      }
      least = std::min(least, sum);
    }
    EXPECT_NEAR(found, least, 1e-5 * least) << "row " << row;
  }
}

/// The stream of bits of a row by the definition: the cheapest state before each state; the lowest of equal ones.
std::vector<bool> best_stream(const std::vector<unsigned>& bits, const std::vector<float>& weights,
                              const std::vector<float>& all, const float* x, float gain, unsigned first) {
  std::vector<float> cost(kStates, 1e30F);
  cost[first] = 0;
  std::vector<std::vector<std::size_t>> before;
  for (std::size_t n = 0; n < bits.size(); ++n) {
    const std::size_t windows = kStates >> bits[n];
    const float z = (x[n] - 0.25F * static_cast<float>(n)) / 2 * (1 / gain);
    std::vector<float> next(kStates);
    std::vector<std::size_t>& from = before.emplace_back(kStates);
    for (std::size_t s = 0; s < kStates; ++s) {
      from[s] = s >> bits[n];
      for (std::size_t p = s >> bits[n]; p < kStates; p += windows)
        if (cost[p] < cost[from[s]]) from[s] = p;
      const float error = z - all[bits[n] * kStates + s];
      next[s] = weights[n] * (error * error) + cost[from[s]];
    }
    cost = next;
  }
  auto state = static_cast<std::size_t>(std::ranges::min_element(cost) - cost.begin());
  std::vector<bool> stream;
  for (std::size_t n = bits.size(); n-- > 0; state = before[n][state])
    for (unsigned bit = 0; bit < bits[n]; ++bit) stream.push_back((state >> bit & 1U) != 0);
  std::reverse(stream.begin(), stream.end());
  return stream;
}

// Every rate, and books in which many entries are equal.
TEST_F(TrellisRows, AreTheStreamsOfTheDefinition) {
  constexpr std::size_t kRows = 30;
  const std::vector<unsigned> bits{8, 5, 1, 7, 2, 6, 3, 4, 1, 1, 8, 2, 5};
  const std::size_t count = bits.size(), sum = 53;
  std::vector<float> weights;
  for (std::size_t n = 0; n < count; ++n) weights.push_back(1 / static_cast<float>(1 + n % 4));
  for (const bool ties : {false, true}) {
    std::vector<float> all = tables(bits, weights), x = random_values(kRows * count, 13);
    if (ties)
      for (std::size_t n = 0; n < kTrellisBooks; ++n) all[n] = std::round(2 * all[n]) / 2;
    const CodedRows rows(*backend_, format_of(bits), x, 1, count, all);
    const std::vector<std::byte> bytes = rows.bytes();
    const std::size_t row_bytes = 2 + (sum + 7) / 8;
    ASSERT_EQ(bytes.size(), kRows * row_bytes);
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::byte* const at = bytes.data() + row * row_bytes;
      const auto low = std::to_integer<unsigned>(at[0]), high = std::to_integer<unsigned>(at[1]);
      const float gain = f16_to_f32(static_cast<std::uint16_t>(low | high << 8));
      std::vector<bool> found;
      for (std::size_t n = 0; n < sum; ++n)
        found.push_back((std::to_integer<unsigned>(at[2 + n / 8]) >> (7 - n % 8) & 1U) != 0);
      EXPECT_EQ(found, best_stream(bits, weights, all, &x[row * count], gain, high)) << "row " << row;
    }
  }
}

TEST_F(TrellisRows, HeadsHaveTablesOfTheirOwn) {
  std::vector<float> both = tables({4, 0}, {1, 1});
  const std::vector<float> second = tables({0, 4}, {1, 1});
  both.insert(both.end(), second.begin() + kTrellisBooks, second.end());
  const CodedRows rows(*backend_, {.kind = RowKind::kTrellis, .group = 4}, random_values(2 * 5 * 2, 5), 2, 2, both);
  const std::vector<float> held = download(*backend_, rows.decoded().view());
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_EQ(held[2 * row + 1], 0.25F);  // head 0: the second value has no bits
    EXPECT_EQ(held[10 + 2 * row], 0);     // head 1: the first has none
  }
}

}  // namespace
}  // namespace kvs::test
