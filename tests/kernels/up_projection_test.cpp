// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

/// The first product of a feed-forward block, with its activation and gate.
class UpProjection : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Types, UpProjection, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

TEST_P(UpProjection, ClampedLimitsGateAndUp) {
  const std::size_t rows = 3, dim = 8, width = 20;
  auto x = rounded(random_values(rows * dim, 1), GetParam());
  auto weights = rounded(random_values(2 * width * dim, 2), GetParam());
  for (float& weight : weights) weight *= 8;  // beyond the limits
  const std::vector<float> bias = random_values(2 * width, 3);
  WeightSource source{2 * width, dim, {}, bias};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first * dim), count * dim, out.begin());
  };
  const auto weight = backend_->make_weight(source);
  const OwnedOperand in(*backend_, x, rows, dim), out(*backend_, rows, width);
  for (const SwigluClamp clamp : {SwigluClamp{1.702F, 3}, SwigluClamp{0.7F, 2}}) {
    backend_->clamped_up_projection(in, *weight, clamp, out);
    const auto values = out.values();
    const auto alpha = static_cast<double>(clamp.alpha), limit = static_cast<double>(clamp.limit);
    for (std::size_t i = 0; i < rows * width; ++i) {
      const auto product = [&](std::size_t row) {
        double sum = static_cast<double>(bias[row]);
        for (std::size_t c = 0; c < dim; ++c)
          sum += static_cast<double>(x[i / width * dim + c]) * static_cast<double>(weights[row * dim + c]);
        return sum;
      };
      const double gate = std::min(product(i % width), limit);
      const double up = std::clamp(product(width + i % width), -limit, limit);
      const double exact = gate / (1 + std::exp(-alpha * gate)) * (up + 1);
      ASSERT_NEAR(static_cast<double>(values[i]), exact, 2e-5 + std::abs(exact) * half_step(GetParam())) << i;
    }
  }
}

/// The exact activation, in double.
double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluSigmoid:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kReluSquared:
      return std::pow(std::max(x, 0.0), 2);
  }
  return 0;
}

TEST_P(UpProjection, SparseCutsGatesBelowTheRowsQuantile) {
  const std::size_t rows = 3, dim = 8, width = 20;
  const auto x = rounded(random_values(rows * dim, 1), GetParam());
  const auto weights = rounded(random_values(2 * width * dim, 2), GetParam());
  WeightSource source{2 * width, dim, {}, {}};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first * dim), count * dim, out.begin());
  };
  const auto weight = backend_->make_weight(source);
  const OwnedOperand in(*backend_, x, rows, dim), out(*backend_, rows, width);
  for (const float deviations : {-0.5F, 0.0F, 1.25F}) {
    backend_->sparse_up_projection(in, *weight, Activation::kGeluTanh, deviations, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> products(2 * width);
      for (std::size_t n = 0; n < products.size(); ++n)
        for (std::size_t c = 0; c < dim; ++c)
          products[n] += static_cast<double>(x[row * dim + c]) * static_cast<double>(weights[n * dim + c]);
      double mean = 0, variance = 0;
      for (std::size_t n = 0; n < width; ++n) mean += products[n] / width;
      for (std::size_t n = 0; n < width; ++n) variance += (products[n] - mean) * (products[n] - mean) / width;
      const double least = mean + static_cast<double>(deviations) * std::sqrt(variance);
      for (std::size_t i = 0; i < width; ++i) {
        const double exact = activated(std::max(products[i] - least, 0.0), Activation::kGeluTanh) * products[width + i];
        ASSERT_NEAR(static_cast<double>(values[row * width + i]), exact, 2e-5 + std::abs(exact) * half_step(GetParam()))
            << deviations << " " << row << " " << i;
      }
    }
  }
}

constexpr Activation kActivations[] = {Activation::kSilu,        Activation::kGeluTanh, Activation::kGeluErf,
                                       Activation::kGeluSigmoid, Activation::kRelu,     Activation::kReluSquared};

TEST_P(UpProjection, MultipliesByTheActivatedGate) {
  for (const Activation activation : kActivations) {
    for (const std::size_t columns : {1, 31, 96}) {
      const std::size_t rows = 5;
      auto x = random_values(rows * 2 * columns, 3);
      for (float& value : x) value *= 20;
      x = rounded(x, GetParam());
      const auto values = projected(*backend_, x, rows, activation, columns);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < columns; ++i) {
          const auto gate = static_cast<double>(x[row * 2 * columns + i]),
                     up = static_cast<double>(x[row * 2 * columns + columns + i]);
          const double exact = activated(gate, activation) * up;
          // exp to 2 units of 2^-23, then a sum, a quotient, a product and the result's type. Where GELU is small, its
          // exponent's own rounding counts: a share of it that e^-x² makes less than 2^-20 of x.
          const double small = activation == Activation::kSilu ? 0.0 : 0x1p-20 * std::min(1.0, std::abs(up));
          ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                      std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24) + small)
              << gate;
        }
      }
    }
  }
}

TEST_P(UpProjection, WithoutAGateIsTheGateOfOne) {
  auto x = random_values(3 * 37, 3);
  std::vector<float> gate_up;
  for (std::size_t row = 0; row < 3; ++row) {
    gate_up.insert(gate_up.end(), x.begin() + static_cast<std::ptrdiff_t>(row * 37),
                   x.begin() + static_cast<std::ptrdiff_t>((row + 1) * 37));
    gate_up.insert(gate_up.end(), 37, 1.0F);
  }
  for (const Activation activation : kActivations) {
    EXPECT_THAT(projected(*backend_, x, 3, activation, 37),
                ElementsAreArray(projected(*backend_, gate_up, 3, activation, 37)));
  }
}

TEST_P(UpProjection, AddsTheBiasFirst) {
  auto x = random_values(3 * 34, 3), bias = random_values(34, 4);
  for (auto* values : {&x, &bias})
    for (float& value : *values) value = std::round(value * 64) / 64;  // types and sums hold them exactly
  std::vector<float> sum = x;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bias[i % 34];
  for (const std::size_t columns : {17, 34}) {
    const auto found = projected(*backend_, x, 3, Activation::kSilu, columns, bias);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float* row = &sum[i / columns * 34];
      const double up = columns == 17 ? static_cast<double>(row[17 + i % columns]) : 1.0;
      const double exact = activated(static_cast<double>(row[i % columns]), Activation::kSilu) * up;
      ASSERT_NEAR(found[i], exact, std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24));  // as above
    }
  }
}

TEST_P(UpProjection, TakesMoreRowsThanAProductsSlab) {
  const std::size_t rows = 4100;  // x and the weight are one column: y[row] = x[row]
  const auto x = rounded(random_values(rows, 5), GetParam());
  const OwnedOperand in(*backend_, x, rows, 1), out(*backend_, rows, 1);
  backend_->up_projection(in, *make_weight(*backend_, {1}, 1, 1), Activation::kSilu, out);
  const auto values = out.values();
  for (const std::size_t row : {0, 2047, 2048, 4095, 4096, 4099}) {
    const double exact = activated(static_cast<double>(x[row]), Activation::kSilu);
    EXPECT_NEAR(values[row], exact, std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24)) << row;
  }
}

TEST_P(UpProjection, KeepsNanAndSaturates) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : kActivations) {
    const auto values = projected(*backend_, {nan, 1, 200, -200, 1, nan, 2, 2}, 1, activation, 4);
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_TRUE(std::isnan(values[1]));
    const float large = activation == Activation::kReluSquared ? 200.0F * 200 * 2 : 200.0F * 2;
    EXPECT_EQ(values[2], rounded({large}, GetParam()).front());
    EXPECT_EQ(values[3], 0.0F);
  }
}

}  // namespace
}  // namespace kvs::test
