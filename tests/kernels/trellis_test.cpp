// The trellis codec: what is coded, in how many bytes, and that no other path through the trellis is better.
#include <gtest/gtest.h>

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

// All 2⁹ streams of a row: the codec's is the one with the least weighed error.
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
