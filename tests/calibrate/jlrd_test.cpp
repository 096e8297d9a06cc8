// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/jlrd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "calibrate/common/whitening.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kRows = 14, kColumns = 10;

class Factorise : public ::testing::Test {
 protected:
  Factorise() : matrix_(kRows * kColumns) {
    std::mt19937 random(5);
    for (double& value : matrix_) value = static_cast<double>(random() >> 8) * 0x1p-23 - 1.0;
  }
  std::vector<double> product(const LowRankFactors& factors) const {
    std::vector<double> result(kRows * kColumns);
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t k = 0; k < factors.rank; ++k)
        for (std::size_t column = 0; column < kColumns; ++column)
          result[row * kColumns + column] +=
              static_cast<double>(factors.up[row * factors.rank + k]) * factors.down[k * kColumns + column];
    return result;
  }
  /// Σ over inputs x of ‖(M − up·down) x‖².
  double error_over(const LowRankFactors& factors, const std::vector<std::vector<double>>& inputs) const {
    const auto approximation = product(factors);
    double error = 0;
    for (const auto& x : inputs)
      for (std::size_t row = 0; row < kRows; ++row) {
        double difference = 0;
        for (std::size_t column = 0; column < kColumns; ++column)
          difference += (matrix_[row * kColumns + column] - approximation[row * kColumns + column]) * x[column];
        error += difference * difference;
      }
    return error;
  }
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32);
  std::unique_ptr<CalibrationOps> ops_ = make_calibration_ops(*backend_);
  std::vector<double> matrix_;
};

TEST_F(Factorise, LosesExactlyTheSingularValuesLeftOut) {
  for (const auto split : {SingularSplit::kUp, SingularSplit::kDown, SingularSplit::kSqrt}) {
    const auto factors = factorise(*ops_, matrix_, kColumns, 4, split, {});
    const auto approximation = product(factors);
    double error = 0, norm = 0, tail = 0;
    for (std::size_t n = 0; n < matrix_.size(); ++n) {
      error += (matrix_[n] - approximation[n]) * (matrix_[n] - approximation[n]);
      norm += matrix_[n] * matrix_[n];
    }
    for (std::size_t k = 4; k < kColumns; ++k) tail += factors.singular[k] * factors.singular[k];
    EXPECT_NEAR(error, tail, 1e-6 * norm);
  }
}

TEST_F(Factorise, SplitMovesTheSingularValues) {
  const auto norm_of_row = [](const LowRankFactors& factors, std::size_t k) {
    double sum = 0;
    for (std::size_t column = 0; column < kColumns; ++column)
      sum += std::pow(static_cast<double>(factors.down[k * kColumns + column]), 2);
    return std::sqrt(sum);
  };
  const auto up = factorise(*ops_, matrix_, kColumns, 3, SingularSplit::kUp, {});
  const auto down = factorise(*ops_, matrix_, kColumns, 3, SingularSplit::kDown, {});
  const auto root = factorise(*ops_, matrix_, kColumns, 3, SingularSplit::kSqrt, {});
  EXPECT_NEAR(norm_of_row(up, 2), 1, 1e-6);
  EXPECT_NEAR(norm_of_row(down, 2), down.singular[2], 1e-5);
  EXPECT_NEAR(norm_of_row(root, 2), std::sqrt(root.singular[2]), 1e-5);
}

TEST_F(Factorise, WhiteningServesTheInputsItSaw) {
  // Inputs that vary mostly along few directions: the whitened factors must lose less on them, and lose nothing at full
  // rank.
  std::mt19937 random(9);
  std::vector<std::vector<double>> inputs(200, std::vector<double>(kColumns));
  std::vector<double> moment(kColumns * kColumns);
  for (auto& x : inputs) {
    for (std::size_t n = 0; n < kColumns; ++n)
      x[n] = (static_cast<double>(random() >> 8) * 0x1p-23 - 1.0) * std::pow(0.5, static_cast<double>(n));
    for (std::size_t a = 0; a < kColumns; ++a)
      for (std::size_t b = 0; b < kColumns; ++b) moment[a * kColumns + b] += x[a] * x[b];
  }
  const auto lower = whitening_factor(*ops_, moment, inputs.size());
  const auto plain = factorise(*ops_, matrix_, kColumns, 3, SingularSplit::kUp, {});
  const auto white = factorise(*ops_, matrix_, kColumns, 3, SingularSplit::kUp, {lower, {}});
  EXPECT_LT(error_over(white, inputs), 0.9 * error_over(plain, inputs));
  const auto whole = product(factorise(*ops_, matrix_, kColumns, kColumns, SingularSplit::kUp, {lower, {}}));
  for (std::size_t n = 0; n < matrix_.size(); ++n) EXPECT_NEAR(whole[n], matrix_[n], 1e-5);
}

TEST(UnrotatedRows, LeavesOutBothChannelsOfEliteChunks) {
  // Two heads of four channels (chunks {0, 2} and {1, 3}), one input channel: the row number is the value.
  std::vector<float> wk(8);
  std::iota(wk.begin(), wk.end(), 0.0F);
  const std::vector<std::vector<std::size_t>> elite{{0}, {1}};
  EXPECT_THAT(unrotated_rows(wk, elite, 4, 4, 1), ElementsAre(1, 3, 4, 6));
}

TEST(UnrotatedRows, KeepsChannelsThatNeverTurn) {
  // Heads of six channels, four of which are rotated: chunk 0 is channels 0 and 2, chunk 1 channels 1 and 3.
  std::vector<float> wk(12);
  std::iota(wk.begin(), wk.end(), 0.0F);
  const std::vector<std::vector<std::size_t>> elite{{0}, {1}};
  EXPECT_THAT(unrotated_rows(wk, elite, 6, 4, 1), ElementsAre(1, 3, 4, 5, 6, 8, 10, 11));
}

TEST(SharedRanks, TakesTheLargestOfBothLists) {
  const double k[] = {5, 4, 1}, v[] = {9, 3, 2, 0.5};
  EXPECT_EQ(shared_ranks(k, v, 4), std::pair(std::size_t{2}, std::size_t{2}));
  EXPECT_EQ(shared_ranks(k, v, 5), std::pair(std::size_t{2}, std::size_t{3}));
  EXPECT_EQ(shared_ranks(k, v, 7), std::pair(std::size_t{3}, std::size_t{4}));
}

TEST(NoExtraParametersRank, EqualsTheValuesForSmolLM2) {
  // d_model 576, 3 KV heads of 64: 576·336/912 = 212.2, 576·312/888 = 202.4, 576·288/864 = 192, 576·192/768 = 144.
  EXPECT_EQ(no_extra_parameters_rank(576, 3, 64, 8), 212U);
  EXPECT_EQ(no_extra_parameters_rank(576, 3, 64, 12), 202U);
  EXPECT_EQ(no_extra_parameters_rank(576, 3, 64, 16), 192U);
  EXPECT_EQ(no_extra_parameters_rank(576, 3, 64, 32), 144U);
}

}  // namespace
}  // namespace kvs
