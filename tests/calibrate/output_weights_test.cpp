// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/output_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "calibrate/common/whitening.h"
#include "calibrate/elitekv/jlrd.h"

namespace kvs {
namespace {

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

/// B Bᵀ.
std::vector<double> square(const std::vector<double>& lower, std::size_t size) {
  std::vector<double> result(size * size);
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < size; ++b)
      for (std::size_t n = 0; n < size; ++n) result[a * size + b] += lower[a * size + n] * lower[b * size + n];
  return result;
}

TEST(OutputWeights, AreWhatErrorsOfKeysAndValuesCost) {
  // Two query heads share a KV head of three channels; five input channels that are white.
  constexpr std::size_t kModel = 5, kDim = 3;
  AttentionMaps maps{2,
                     1,
                     kDim,
                     kModel,
                     0.5F,
                     random_floats(2 * kDim * kModel, 1),
                     random_floats(kDim * kModel, 2),
                     random_floats(kModel * 2 * kDim, 3),
                     {}};
  std::vector<double> identity(kModel * kModel);
  for (std::size_t n = 0; n < kModel; ++n) identity[n * kModel + n] = 1;
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = make_calibration_ops(*backend);
  const std::vector<std::vector<std::size_t>> rows{{0, 2}};
  const OutputWeights weights = output_weights(*ops, maps, rows, identity);

  std::vector<double> values(kDim * kDim), keys(4);
  for (std::size_t head = 0; head < 2; ++head) {
    const auto output = [&](std::size_t row, std::size_t channel) {
      return static_cast<double>(maps.output[row * 2 * kDim + head * kDim + channel]);
    };
    double energy = 0;  // E‖W_o,h W_v x‖² of white x
    for (std::size_t row = 0; row < kModel; ++row)
      for (std::size_t column = 0; column < kModel; ++column) {
        double sum = 0;
        for (std::size_t c = 0; c < kDim; ++c) sum += output(row, c) * maps.value[c * kModel + column];
        energy += sum * sum;
      }
    for (std::size_t a = 0; a < kDim; ++a)
      for (std::size_t b = 0; b < kDim; ++b)
        for (std::size_t row = 0; row < kModel; ++row) values[a * kDim + b] += output(row, a) * output(row, b);
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t column = 0; column < kModel; ++column)
          keys[a * 2 + b] += 0.25 * energy * maps.query[(head * kDim + rows[0][a]) * kModel + column] *
                             static_cast<double>(maps.query[(head * kDim + rows[0][b]) * kModel + column]);
  }
  const auto expect_near = [](const std::vector<double>& found, const std::vector<double>& expected) {
    const double scale = *std::ranges::max_element(expected);
    for (std::size_t n = 0; n < found.size(); ++n)
      EXPECT_NEAR(found[n], expected[n], 2e-3 * scale) << n;  // the damping
  };
  expect_near(square(weights.values.front(), kDim), values);
  expect_near(square(weights.keys.front(), 2), keys);
}

TEST(OutputWeights, AHeadWhoseChannelsAllRotateHasNoWeightsOfKeys) {
  constexpr std::size_t kModel = 3, kDim = 2;
  const AttentionMaps maps{2,
                           2,
                           kDim,
                           kModel,
                           0.5F,
                           random_floats(2 * kDim * kModel, 1),
                           random_floats(2 * kDim * kModel, 2),
                           random_floats(kModel * 2 * kDim, 3),
                           {}};
  const std::vector<double> identity{1, 0, 0, 0, 1, 0, 0, 0, 1};
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = make_calibration_ops(*backend);
  const std::vector<std::vector<std::size_t>> rows{{}, {0, 1}};
  const OutputWeights weights = output_weights(*ops, maps, rows, identity);
  EXPECT_TRUE(weights.keys[0].empty());
  EXPECT_EQ(weights.keys[1].size(), kDim * kDim);
  EXPECT_EQ(weights.values[0].size(), kDim * kDim);
}

TEST(Weighting, OutputsServeTheRowsThatCount) {
  constexpr std::size_t kHeight = 6, kWidth = 8, kRank = 2;
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = make_calibration_ops(*backend);
  const std::vector<float> values = random_floats(kHeight * kWidth, 7), mix = random_floats(9, 8);
  const std::vector<double> matrix(values.begin(), values.end());
  // The first three rows cost 100 times as much as the others, and their costs are correlated.
  std::vector<double> heavy(9), light(9);
  for (std::size_t a = 0; a < 3; ++a) {
    light[a * 4] = 0.1;
    for (std::size_t b = 0; b <= a; ++b) heavy[a * 3 + b] = a == b ? 10 : mix[a * 3 + b];
  }
  const Weighting weighting{{}, {heavy, light}};
  const auto cost = [&](const LowRankFactors& factors) {
    double sum = 0;
    for (std::size_t column = 0; column < kWidth; ++column)
      for (std::size_t block = 0; block < 2; ++block)
        for (std::size_t n = 0; n < 3; ++n) {
          double weighed = 0;  // row n of Bᵀ (M − up·down)
          for (std::size_t row = n; row < 3; ++row) {
            double error = matrix[(block * 3 + row) * kWidth + column];
            for (std::size_t k = 0; k < kRank; ++k)
              error -=
                  static_cast<double>(factors.up[(block * 3 + row) * kRank + k]) * factors.down[k * kWidth + column];
            weighed += weighting.outputs[block][row * 3 + n] * error;
          }
          sum += weighed * weighed;
        }
    return sum;
  };
  const auto plain = factorise(*ops, matrix, kWidth, kRank, SingularSplit::kUp, {});
  const auto weighed = factorise(*ops, matrix, kWidth, kRank, SingularSplit::kUp, weighting);
  EXPECT_LT(cost(weighed), 0.8 * cost(plain));
  double tail = 0;  // Eckart and Young: the error is the omitted singular values
  for (std::size_t n = kRank; n < weighed.singular.size(); ++n) tail += weighed.singular[n] * weighed.singular[n];
  EXPECT_NEAR(cost(weighed), tail, 1e-5 * tail);
}

TEST(DampedCholesky, TakesSingularMatricesAndZeros) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = make_calibration_ops(*backend);
  std::vector<double> ones(9, 1), zeros(9);
  damped_cholesky(*ops, {ones, {3, 3}}, 1e-3);
  EXPECT_NEAR(ones[0], std::sqrt(1.001), 1e-9);
  damped_cholesky(*ops, {zeros, {3, 3}}, 1e-3);
  EXPECT_GT(zeros[8], 0);
}

}  // namespace
}  // namespace kvs
