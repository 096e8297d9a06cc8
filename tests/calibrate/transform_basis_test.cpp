// SPDX-License-Identifier: Apache-2.0
// The cost of errors, against finite differences of the attention itself, and the transform that follows from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate/transform/basis.h"
#include "core/error.h"
#include "tests/analyzers/memory_source.h"
#include "tests/kernels/support.h"

namespace kvs {
namespace {

constexpr std::size_t kTransformTokens = 20, kTransformWidth = 4, kTransformSinks = 2;

class TransformBasisTest : public ::testing::Test {
 protected:
  using Values = std::vector<double>;

  float state(StateKind kind, std::size_t head, std::size_t token, std::size_t channel) const {
    if (kind == constant_ && channel == 1) return 3;
    return random_[((static_cast<std::size_t>(kind) * 2 + head) * kTransformTokens + token) * kTransformWidth +
                   channel];
  }
  TransformMoments moments(std::size_t documents = 1) {
    std::vector<double> output;
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t i = 0; i < kTransformWidth * kTransformWidth; ++i)
        output.push_back(i % (kTransformWidth + 1) == 0 ? 2.0 + static_cast<double>(head) : 0);  // W_oᵀ W_o
    TransformMoments result({{0}, {{2, 2, kTransformWidth}}, kTransformSinks}, {{.scale = 0.5F}}, {output});
    MemorySource source(documents, 2, kTransformTokens, kTransformWidth,
                        [&](std::size_t, std::size_t, StateKind kind, std::size_t head, std::size_t token,
                            std::size_t channel) { return state(kind, head, token, channel); });
    for (std::size_t document = 0; document < documents; ++document) result.add(source, document);
    return result;
  }
  TransformBasis basis_of(const TransformMoments& sums, const TransformScales& scales = {}) const {
    return transform_basis(*ops_, sums, {0, 1}, {&scales, 1}, TransformRows::kLayer);
  }
  /// Returns Σ_i ‖o_i‖² of the change in head `head`'s results if `error` is added to key, or value, `token`.
  double change(std::size_t head, std::size_t token, bool keys, const Values& error) const {
    double sum = 0;
    for (std::size_t i = 0; i < kTransformTokens; ++i) {
      const Values before = result(head, i, token, keys, Values(kTransformWidth)),
                   after = result(head, i, token, keys, error);
      for (std::size_t n = 0; n < kTransformWidth; ++n) sum += std::pow(after[n] - before[n], 2);
    }
    return sum;
  }

  std::vector<float> random_ = test::random_values(8 * 2 * kTransformTokens * kTransformWidth, 5);
  StateKind constant_ = StateKind::kKPost;  // none
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
  std::unique_ptr<CalibrationOps> ops_ = make_calibration_ops(*backend_);

 private:
  Values result(std::size_t head, std::size_t i, std::size_t changed, bool keys, const Values& error) const {
    Values mixed(kTransformWidth);
    double all = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      double score = 0;
      for (std::size_t n = 0; n < kTransformWidth; ++n)
        score += 0.5 * static_cast<double>(state(StateKind::kQPre, head, i, n)) *
                 (static_cast<double>(state(StateKind::kKPre, head, j, n)) + (keys && j == changed ? error[n] : 0));
      const double weight = std::exp(score);
      all += weight;
      for (std::size_t n = 0; n < kTransformWidth; ++n)
        mixed[n] +=
            weight * (static_cast<double>(state(StateKind::kV, head, j, n)) + (!keys && j == changed ? error[n] : 0));
    }
    for (double& value : mixed) value /= all;
    return mixed;
  }
};

TEST_F(TransformBasisTest, CostsAreThoseOfTheAttentionsOutput) {
  const TransformMoments sums = moments();
  const Values error{1e-4, -2e-4, 0.5e-4, 1.5e-4};
  for (const bool keys : {true, false}) {
    const Values costs = keys ? sums.key_costs(0) : sums.value_costs(0);
    for (std::size_t head = 0; head < 2; ++head) {
      double expected = 0, found = 0;
      for (std::size_t token = kTransformSinks; token < kTransformTokens; ++token)
        expected += (2.0 + static_cast<double>(head)) * change(head, token, keys, error) /
                    static_cast<double>(kTransformTokens - kTransformSinks);
      for (std::size_t a = 0; a < kTransformWidth; ++a)
        for (std::size_t b = 0; b < kTransformWidth; ++b)
          found += error[a] * costs[(head * kTransformWidth + a) * kTransformWidth + b] * error[b];
      EXPECT_NEAR(found / expected, 1, 1e-3) << (keys ? "keys" : "values") << " of head " << head;
    }
  }
}

TEST_F(TransformBasisTest, CoefficientsHaveUnitVarianceAndComeBack) {
  const TransformMoments sums = moments();
  const TransformBasis basis = basis_of(sums);
  const std::size_t values = basis.mean.size();
  const Values products = sums.outer({0, 1});
  for (std::size_t a = 0; a < values; ++a)
    for (std::size_t b = 0; b < values; ++b) {
      double identity = 0, covariance = 0;
      for (std::size_t i = 0; i < values; ++i) {
        identity += basis.analysis[a * values + i] * basis.synthesis[b * values + i];
        for (std::size_t j = 0; j < values; ++j)
          covariance += basis.analysis[a * values + i] * basis.analysis[b * values + j] *
                        (products[i * values + j] / sums.tokens() - basis.mean[i] * basis.mean[j]);
      }
      EXPECT_NEAR(identity, a == b ? 1 : 0, 1e-6);
      // The diagonal had grown by a thousandth; the last of the 16 coefficients of 18 tokens are near singular.
      if (a < 8 && b < 8) {
        EXPECT_NEAR(covariance, a == b ? 1 : 0, 0.02) << a << ", " << b;
      }
    }
  EXPECT_TRUE(std::ranges::is_sorted(basis.variances, std::greater()));
}

TEST_F(TransformBasisTest, OfFewerCoefficientsHasTheFirstOnes) {
  const TransformMoments sums = moments();
  const TransformScales scales;
  const TransformBasis all = basis_of(sums),
                       some = transform_basis(*ops_, sums, {0, 1}, {&scales, 1}, TransformRows::kLayer, nullptr,
                                              [&](auto variances) {
                                                EXPECT_EQ(variances.size(), all.mean.size());
                                                return 5;
                                              });
  const auto first = [](const Values& values, std::size_t count) {
    return Values(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  };
  EXPECT_EQ(some.variances, first(all.variances, 5));
  EXPECT_EQ(some.key_shares.size(), 5U);
  ASSERT_EQ(some.analysis.size(), 5 * all.mean.size());
  for (std::size_t n = 0; n < some.analysis.size(); ++n) {
    EXPECT_NEAR(some.analysis[n], all.analysis[n], 1e-9 * std::abs(all.analysis[n]) + 1e-9);
    EXPECT_NEAR(some.synthesis[n], all.synthesis[n], 1e-9 * std::abs(all.synthesis[n]) + 1e-9);
  }
}

TEST_F(TransformBasisTest, AChannelThatNeverChangesGetsNoVariance) {
  constant_ = StateKind::kKPre;
  const TransformBasis basis = basis_of(moments());
  EXPECT_NEAR(basis.mean[1], 3, 1e-6);
  EXPECT_LT(basis.variances[14], 1e-9 * basis.variances[0]);  // channel 1 of both heads' keys
  EXPECT_GT(basis.variances[13], 1e-9 * basis.variances[0]);
}

TEST_F(TransformBasisTest, ALayerInWhichNothingChangesIsAnError) {
  std::ranges::fill(random_, 1.0F);
  try {
    (void)basis_of(moments());
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
  }
}

TEST_F(TransformBasisTest, ScalesWeighKeysAgainstValues) {
  const TransformMoments sums = moments();
  const TransformBasis keys = basis_of(sums, {1000, 1}), values = basis_of(sums, {1, 1000});
  EXPECT_GT(keys.key_shares.front(), 0.9);
  EXPECT_LT(values.key_shares.front(), 0.1);
}

TEST_F(TransformBasisTest, ACheckpointKeepsTheSums) {
  const TransformMoments whole = moments(2);
  TransformMoments restored = moments(1);
  std::vector<std::vector<double>> state;
  for (const std::span<const double> part : whole.state()) state.emplace_back(part.begin(), part.end());
  restored.restore(state);
  EXPECT_EQ(restored.key_costs(0), whole.key_costs(0));
  EXPECT_EQ(restored.samples({0, 1}), whole.samples({0, 1}));
  state.pop_back();
  EXPECT_THROW(restored.restore(state), Error);
}

}  // namespace
}  // namespace kvs
