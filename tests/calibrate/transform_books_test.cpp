// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/transform/bits.h"
#include "calibrate/transform/books.h"
#include "calibrate/transform/trellis_store.h"
#include "tests/kernels/held_rows.h"

namespace kvs {
namespace {

constexpr std::size_t kBookValues = 64;

/// Nearly Gaussian: halved sums of 12 uniform values of variance 1/3.
std::vector<float> gaussian_rows(std::size_t rows, std::uint32_t seed) {
  const std::vector<float> uniform = test::random_values(12 * rows * kBookValues, seed);
  std::vector<float> x(rows * kBookValues);
  for (std::size_t n = 0; n < uniform.size(); ++n) x[n / 12] += uniform[n] / 2;
  return x;
}

class TrellisBooksTest : public ::testing::Test {
 protected:
  /// Squared error of rows coded with `bits` a value, relative to their energy.
  double error_of(const std::vector<float>& books, const std::vector<float>& x, std::size_t bits) {
    const RowType types = trellis_store(
        books, trellis_coefficients(std::vector(kBookValues, bits), std::vector<float>(kBookValues, 1.0F)));
    const test::CodedRows rows(*backend_, types.format, x, 1, kBookValues, types.scales);
    const std::vector<float> held = download(*backend_, rows.decoded().view());
    double error = 0, energy = 0;
    for (std::size_t n = 0; n < x.size(); ++n) {
      error += std::pow(static_cast<double>(held[n] - x[n]), 2);
      energy += std::pow(static_cast<double>(x[n]), 2);
    }
    return error / energy;
  }

  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
};

// The errors that the allocation assumes. Lloyd and Max's scalar quantisers leave 0.363, 0.117 and 0.0345.
TEST_F(TrellisBooksTest, OfGaussianValuesReachTheErrorsOfTheAllocation) {
  const TrellisBooks books(*backend_);
  const std::vector<float> x = gaussian_rows(200, 7);
  constexpr double kScalar[] = {1, 0.363, 0.117, 0.0345};
  for (std::size_t bits = 1; bits <= 3; ++bits) {
    const double error = error_of(books.books(), x, bits);
    EXPECT_NEAR(error / kTrellisError[bits], 1, 0.2) << bits << " bits";
    EXPECT_LT(error, 0.9 * kScalar[bits]);
  }
}

TEST_F(TrellisBooksTest, FitHeavyTails) {
  TrellisBooks books(*backend_);
  std::vector<float> rows = gaussian_rows(400, 3), others = gaussian_rows(100, 4);
  for (auto* const part : {&rows, &others})
    for (float& value : *part) value *= value * value;
  const double before = error_of(books.books(), others, 2);
  const std::vector<TrellisSamples> samples{
      {rows, std::vector<std::size_t>(kBookValues, 2), std::vector<double>(kBookValues, 1)}};
  for (int n = 0; n < 8; ++n) books.fit(samples, 0);
  EXPECT_LT(error_of(books.books(), others, 2), 0.5 * before);
}

TEST_F(TrellisBooksTest, LeaveOutTheRowsThatCostMost) {
  TrellisBooks books(*backend_);
  std::vector<float> rows = gaussian_rows(10, 4);
  rows[3 * kBookValues] = 1e4F;  // its gain leaves nothing of the others
  const std::vector<TrellisSamples> samples{
      {rows, std::vector<std::size_t>(kBookValues, 2), std::vector<double>(kBookValues, 1)}};
  TrellisBooks other = books;
  const double with = books.fit(samples, 0).front(), without = other.fit(samples, 0.1).front();
  EXPECT_GT(with, 100 * without);
}

}  // namespace
}  // namespace kvs
