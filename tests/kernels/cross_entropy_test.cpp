// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

class CrossEntropy : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);

  std::vector<float> run(const std::vector<float>& x, const Weight& head, const std::vector<std::int32_t>& targets,
                         float softcap = 0) {
    const OwnedOperand operand(*backend_, x, targets.size(), head.columns());
    std::vector<float> nll(targets.size(), std::numeric_limits<float>::quiet_NaN());
    backend_->cross_entropy(operand, head, targets, nll, softcap);
    return nll;
  }
};

double reference(const float* x, const std::vector<float>& w, std::size_t k, std::size_t target, double softcap = 0) {
  std::vector<double> logits(w.size() / k);
  for (std::size_t row = 0; row < logits.size(); ++row)
    for (std::size_t i = 0; i < k; ++i) logits[row] += static_cast<double>(x[i]) * static_cast<double>(w[row * k + i]);
  if (softcap > 0)
    for (double& logit : logits) logit = softcap * std::tanh(logit / softcap);
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[target];
}

TEST_P(CrossEntropy, EqualsALogSoftmaxInDouble) {
  for (const std::size_t vocabulary : {5, 1000, 1024, 2600}) {
    for (const std::size_t rows : {1, 7, 130}) {
      const std::size_t k = 48;
      const auto x = rounded(random_values(rows * k, 1), GetParam());
      const auto w = rounded(random_values(vocabulary * k, 2), GetParam());
      std::vector<std::int32_t> targets(rows);
      for (std::size_t row = 0; row < rows; ++row) targets[row] = static_cast<std::int32_t>(row * 7919 % vocabulary);
      targets.back() = static_cast<std::int32_t>(vocabulary) - 1;
      const auto nll = run(x, *make_weight(*backend_, w, vocabulary, k), targets);
      for (std::size_t row = 0; row < rows; ++row) {
        const double exact = reference(x.data() + row * k, w, k, static_cast<std::size_t>(targets[row]));
        // Two logits of 48 products below 1 each, whose rounding adds up to 48 · 2^-24 · 48 at most, and the f32
        // result.
        ASSERT_NEAR(static_cast<double>(nll[row]), exact, 2 * 48 * 48 * 0x1p-24 + exact * 0x1p-23)
            << vocabulary << ' ' << row;
      }
    }
  }
}

TEST_P(CrossEntropy, CapsLogitsSoftly) {
  const std::size_t vocabulary = 1031, rows = 7, k = 48;  // logits reach about ±12, well into the cap of 5
  const auto x = rounded(random_values(rows * k, 3), GetParam());
  const auto w = rounded(random_values(vocabulary * k, 4), GetParam());
  const std::vector<std::int32_t> targets{0, 1, 2, 500, 1023, 1024, 1030};
  const auto nll = run(x, *make_weight(*backend_, w, vocabulary, k), targets, 5);
  for (std::size_t row = 0; row < rows; ++row) {
    const double exact = reference(x.data() + row * k, w, k, static_cast<std::size_t>(targets[row]), 5);
    // The cap only narrows the logits' own errors (see above); its tanh adds 3 units of 2^-24 · 5 to each of two.
    ASSERT_NEAR(static_cast<double>(nll[row]), exact, 2 * (48 * 48 + 2 * 15) * 0x1p-24 + exact * 0x1p-23) << row;
  }
}

TEST_P(CrossEntropy, RefusesInfiniteLogitsUnderACap) {
  const auto weight = make_weight(*backend_, {1, std::numeric_limits<float>::infinity()}, 2, 1);
  EXPECT_THROW(run({1}, *weight, {0}, 30), Error);
}

TEST_P(CrossEntropy, SkipsTokensWithoutATarget) {
  const auto weight = make_weight(*backend_, random_values(70 * 16, 1), 70, 16);
  const auto x = random_values(3 * 16, 2);
  const auto nll = run(x, *weight, {4, -1, 6});
  EXPECT_GT(nll[0], 0.0F);
  EXPECT_EQ(nll[1], 0.0F);
  EXPECT_GT(nll[2], 0.0F);
}

TEST_P(CrossEntropy, StaysExactForLargeLogits) {
  // Logits 0, 200 and 400: e^400 is far outside of f32, the answer for token 1 is 200 to within e^-200.
  const auto weight = make_weight(*backend_, {0, 200, 400}, 3, 1);
  EXPECT_FLOAT_EQ(run({1}, *weight, {1})[0], 200.0F);
  EXPECT_EQ(run({1}, *weight, {2})[0], 0.0F);
}

TEST_P(CrossEntropy, RefusesLogitsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0UL, 1023UL, 1500UL, 1999UL}) {
      std::vector<float> w(2000, 1.0F);
      w[at] = bad;
      const auto weight = make_weight(*backend_, w, 2000, 1);
      try {
        run({1, 1}, *weight, {0, 1});
        ADD_FAILURE() << "no error for " << bad << " at " << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
      }
    }
  }
}

TEST_P(CrossEntropy, GivesARowTheSameBitsWhateverTheBatch) {
  const std::size_t rows = 300, k = 64, vocabulary = 3000;
  const auto x = random_values(rows * k, 1), w = random_values(vocabulary * k, 2);
  const auto weight = make_weight(*backend_, w, vocabulary, k);
  const auto all = run(x, *weight, std::vector<std::int32_t>(rows, 1234));
  const std::vector<float> some(x.begin() + 10 * 64, x.begin() + 17 * 64);
  EXPECT_THAT(run(some, *weight, std::vector<std::int32_t>(7, 1234)), ElementsAreArray(all.data() + 10, 7));
}

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropy, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
