// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

/// RMS norms and layer norms of rows and of heads.
class Norms : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Types, Norms, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

TEST_P(Norms, RmsNormDividesARowByItsRootMeanSquare) {
  for (const std::size_t columns : {1, 15, 64, 577}) {
    const std::size_t rows = 7;
    const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2);
    const auto in = uploaded<2>(*backend_, x, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns});
    const OwnedOperand out(*backend_, rows, columns);
    backend_->rms_norm(in.view(), gains.view(), 1e-5F, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < columns; ++i) squares += std::pow(static_cast<double>(x[row * columns + i]), 2);
      for (std::size_t i = 0; i < columns; ++i) {
        const double exact = static_cast<double>(x[row * columns + i]) * static_cast<double>(gain[i]) /
                             std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(1e-5F));
        // One rounding to the type, two of products, one of the inverse root, and half of the sum's (at most 15 steps).
        ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                    std::abs(exact) * (half_step(GetParam()) + 11 * 0x1p-24));
      }
    }
  }
}

TEST_P(Norms, RmsNormKeepsNanInItsRow) {
  std::vector<float> x(2 * 20, 1.0F);
  x[25] = std::numeric_limits<float>::quiet_NaN();
  const auto in = uploaded<2>(*backend_, x, {2, 20});
  const auto gain = uploaded<1>(*backend_, std::vector<float>(20, 1.0F), {20});
  const OwnedOperand out(*backend_, 2, 20);
  backend_->rms_norm(in.view(), gain.view(), 0, out);
  const auto values = out.values();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(values[i]), i >= 20);
}

TEST_P(Norms, RmsNormAddJoinsTheNormToTheSum) {
  for (const std::size_t columns : {1, 15, 577}) {
    const std::size_t rows = 3;
    const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2),
               sum = random_values(rows * columns, 3);
    const auto in = uploaded<2>(*backend_, x, {rows, columns}), target = uploaded<2>(*backend_, sum, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns});
    backend_->rms_norm_add(in.view(), gains.view(), 1e-5F, target.view());
    const auto values = download(*backend_, target.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
      double squares = 0;
      for (std::size_t c = 0; c < columns; ++c)
        squares += std::pow(static_cast<double>(x[i / columns * columns + c]), 2);
      const double normed = static_cast<double>(x[i]) * static_cast<double>(gain[i % columns]) /
                            std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(1e-5F));
      const double exact = static_cast<double>(sum[i]) + normed;
      ASSERT_NEAR(static_cast<double>(values[i]), exact, std::abs(normed) * 11 * 0x1p-24 + std::abs(exact) * 0x1p-24);
    }
  }
}

TEST_P(Norms, LayerNormCentresAndScalesARow) {
  for (const std::size_t columns : {2, 15, 64, 577}) {
    const std::size_t rows = 5;
    auto x = random_values(rows * columns, 1);
    for (float& value : x) value += 3;  // a mean that must be subtracted before squares are summed
    const auto gain = random_values(columns, 2), bias = random_values(columns, 3);
    const auto in = uploaded<2>(*backend_, x, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns}), biases = uploaded<1>(*backend_, bias, {columns});
    const OwnedOperand out(*backend_, rows, columns);
    backend_->layer_norm(in.view(), gains.view(), biases.view(), 1e-5F, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      const float* from = &x[row * columns];
      const auto n = static_cast<double>(columns);
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < columns; ++i) mean += static_cast<double>(from[i]) / n;
      for (std::size_t i = 0; i < columns; ++i) variance += std::pow(static_cast<double>(from[i]) - mean, 2) / n;
      const double root = std::sqrt(variance + static_cast<double>(1e-5F));
      for (std::size_t i = 0; i < columns; ++i) {
        const double scaled = (static_cast<double>(from[i]) - mean) / root * static_cast<double>(gain[i]);
        const double exact = scaled + static_cast<double>(bias[i]);
        // The mean, of values near 4, is off by at most 20 steps of 2^-23, which the root enlarges; then as RmsNorm.
        ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                    20 * 0x1p-23 / root * std::abs(static_cast<double>(gain[i])) + std::abs(scaled) * 40 * 0x1p-24 +
                        std::abs(exact) * (0x1p-24 + half_step(GetParam())));
      }
    }
  }
}

TEST_P(Norms, NormHeadsDividesEachHeadOrAllHeadsOfAToken) {
  const std::size_t members = 2, heads = 3, tokens = 5, dim = 40, size = members * heads * tokens * dim;
  const auto x = random_values(size, 1);
  for (const bool whole_row : {false, true}) {
    const std::size_t together = whole_row ? heads : 1;
    const auto gain = random_values(together * dim, 2);
    const auto states = uploaded<4>(*backend_, x, {members, heads, tokens, dim});
    const auto gains = uploaded<1>(*backend_, gain, {together * dim});
    backend_->norm_heads(states.view(), gains.view(), 1e-6F);
    const auto values = download(*backend_, states.view());
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t head = i / (tokens * dim) % heads, first = whole_row ? 0 : head;
      double squares = 0;
      for (std::size_t h = first; h < first + together; ++h)
        for (std::size_t c = 0; c < dim; ++c)
          squares += std::pow(static_cast<double>(x[i / (heads * tokens * dim) * heads * tokens * dim +
                                                    h * tokens * dim + i % (tokens * dim) / dim * dim + c]),
                              2);
      const float scale = gain[whole_row ? head * dim + i % dim : i % dim];
      const double exact = static_cast<double>(x[i]) * static_cast<double>(scale) /
                           std::sqrt(squares / static_cast<double>(together * dim) + static_cast<double>(1e-6F));
      ASSERT_NEAR(static_cast<double>(values[i]), exact, std::abs(exact) * 12 * 0x1p-24) << i;
    }
  }
}

TEST_P(Norms, LayerNormHeadsNormalisesEachHeadWithItsOwnGain) {
  const std::size_t members = 2, heads = 3, tokens = 5, dim = 20, size = members * heads * tokens * dim;
  const auto x = random_values(size, 1);
  for (const bool own_gains : {false, true}) {
    const std::size_t gains = (own_gains ? heads : 1) * dim;
    const auto gain = random_values(gains, 2), bias = random_values(gains, 3);
    const auto states = uploaded<4>(*backend_, x, {members, heads, tokens, dim});
    backend_->layer_norm_heads(states.view(), uploaded<1>(*backend_, gain, {gains}).view(),
                               uploaded<1>(*backend_, bias, {gains}).view(), 1e-5F);
    const auto values = download(*backend_, states.view());
    for (std::size_t i = 0; i < size; ++i) {
      const float* const row = &x[i / dim * dim];
      const double mean = std::accumulate(row, row + dim, 0.0) / dim;
      double variance = 0;
      for (std::size_t c = 0; c < dim; ++c) variance += std::pow(static_cast<double>(row[c]) - mean, 2) / dim;
      const std::size_t at = (own_gains ? i / (tokens * dim) % heads * dim : 0) + i % dim;
      const double exact =
          (static_cast<double>(x[i]) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(gain[at]) +
          static_cast<double>(bias[at]);
      ASSERT_NEAR(static_cast<double>(values[i]), exact, 40 * 0x1p-24) << i;
    }
  }
}

}  // namespace
}  // namespace kvs::test
