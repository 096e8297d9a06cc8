// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/attention_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "calibrate/elitekv/attention_statistics.h"
#include "calibrate/elitekv/query_turns.h"

namespace kvs {
namespace {

/// Six channels per head, four of which are rotated: two chunks, and two channels that are never rotated.
struct PairStates {
  static constexpr std::size_t kHeads = 2, kTokens = 9, kDim = 6, kChunks = 2, kFeatures = 3 * kChunks;

  PairStates() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (auto* const values : {&q, &k}) {
      values->resize((values == &q ? kHeads : 1) * kTokens * kDim);
      std::ranges::generate(*values, [&] { return normal(random); });
    }
    for (std::size_t token = 0; token < kTokens; ++token)
      for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
        cosine.push_back(static_cast<float>(std::cos(angle(chunk) * static_cast<double>(token))));
        sine.push_back(static_cast<float>(std::sin(angle(chunk) * static_cast<double>(token))));
      }
  }
  static double angle(std::size_t chunk) { return chunk == 0 ? 1.0 : 0.3; }
  DocumentStates states() const {
    DocumentStates result;
    result[StateKind::kQPre] = {std::span<const float>(q), {kHeads, kTokens, kDim}};
    result[StateKind::kKPre] = {std::span<const float>(k), {1, kTokens, kDim}};
    return result;
  }
  RopeTable table() const {
    return {{std::span<const float>(cosine), {kTokens, kChunks}}, {std::span<const float>(sine), {kTokens, kChunks}}};
  }
  /// The pair's features, and its score as the last element.
  std::vector<double> features(std::size_t head, std::size_t i, std::size_t j) const {
    const float *const x = &q[(head * kTokens + i) * kDim], *const y = &k[j * kDim];
    std::vector<double> result(kFeatures + 1);
    for (std::size_t c = 0; c < kChunks; ++c) {
      // Rotated by hand: each side by its own position.
      const auto turned = [&](const float* state, std::size_t position) {
        const double phase = angle(c) * static_cast<double>(position);
        return std::pair(state[c] * std::cos(phase) - state[c + kChunks] * std::sin(phase),
                         state[c] * std::sin(phase) + state[c + kChunks] * std::cos(phase));
      };
      const auto a = turned(x, i), b = turned(y, j);
      result[c] = a.first * b.first + a.second * b.second;
      result[kChunks + c] = static_cast<double>(x[c]) * y[c] + static_cast<double>(x[c + kChunks]) * y[c + kChunks];
      result[2 * kChunks + c] = static_cast<double>(x[c + kChunks]) * y[c] - static_cast<double>(x[c]) * y[c + kChunks];
      result[kFeatures] += result[c];
    }
    for (std::size_t n = 2 * kChunks; n < kDim; ++n) result[kFeatures] += static_cast<double>(x[n]) * y[n];
    return result;
  }
  std::vector<float> q, k, cosine, sine;
};

TEST(AttentionPairs, AreTheCovariancesOfFeaturesUnderEachQuerysWeights) {
  constexpr std::size_t kSize = PairStates::kFeatures;
  const PairStates input;
  for (const ScoreRule& rule : {ScoreRule{0.7F}, ScoreRule{0.7F, 1.5F}, ScoreRule{0.7F, 0, 3},
                                ScoreRule{0.7F, 0, 3, {0.5F, -1.0F}}, ScoreRule{.scale = 0.7F, .chunk = 4}}) {
    std::vector<double> expected(PairStates::kHeads * kSize * kSize), mass(PairStates::kTokens);
    for (std::size_t head = 0; head < PairStates::kHeads; ++head)
      for (std::size_t i = 0; i < PairStates::kTokens; ++i) {
        const std::size_t first = rule.chunk > 0                        ? i - i % rule.chunk
                                  : rule.window > 0 && i >= rule.window ? i + 1 - rule.window
                                                                        : 0;
        std::vector<double> weights, mean(kSize);
        for (std::size_t j = first; j <= i; ++j) {
          double score = rule.scale * input.features(head, i, j).back();
          if (rule.softcap > 0) score = rule.softcap * std::tanh(score / rule.softcap);
          weights.push_back(std::exp(score));
        }
        const double sink = rule.sinks.empty() ? 0 : std::exp(static_cast<double>(rule.sinks[head]));
        const double sum = std::accumulate(weights.begin(), weights.end(), sink);
        for (std::size_t j = first; j <= i; ++j) {
          const double weight = weights[j - first] /= sum;
          mass[j] += weight;
          for (std::size_t f = 0; f < kSize; ++f) mean[f] += weight * input.features(head, i, j)[f];
        }
        for (std::size_t f = 0; f < kSize; ++f)  // a sink's features are 0
          for (std::size_t g = 0; g < kSize; ++g)
            expected[(head * kSize + f) * kSize + g] += sink / sum * mean[f] * mean[g];
        for (std::size_t j = first; j <= i; ++j) {
          const auto of_pair = input.features(head, i, j);
          for (std::size_t f = 0; f < kSize; ++f)
            for (std::size_t g = 0; g < kSize; ++g)
              expected[(head * kSize + f) * kSize + g] +=
                  weights[j - first] * (of_pair[f] - mean[f]) * (of_pair[g] - mean[g]);
        }
      }
    const auto backend = make_backend("cpu", DType::kF32, 1);
    std::vector<double> gram(expected.size()), found(mass.size());
    AttentionPairs::add(*backend, input.states(), input.table(), rule, {gram, {PairStates::kHeads, kSize, kSize}},
                        found);
    for (std::size_t n = 0; n < gram.size(); ++n) EXPECT_NEAR(gram[n], expected[n], 1e-4) << n;
    for (std::size_t n = 0; n < mass.size(); ++n) EXPECT_NEAR(found[n], mass[n], 1e-5) << n;
  }
}

TEST(AttentionStatistics, GramsAreOfRotatedMinusUnrotatedScores) {
  AttentionStatistics statistics({{0}, 2, 1, 1}, {{}}, 0);
  // The features' covariances of each query head, for one chunk.
  statistics.pairs = {5, 2, 0, 2, 3, 0, 0, 0, 1, 7, 1, 0, 1, 2, 0, 0, 0, 1};
  EXPECT_EQ(statistics.grams(0, Granularity::kQueryHead), (std::vector<double>{5 - 2 * 2 + 3, 7 - 2 * 1 + 2}));
  EXPECT_EQ(statistics.grams(0, Granularity::kKvHead), (std::vector<double>{4 + 7}));
}

TEST(QueryTurns, FindTheFactorThatARotationAmountsTo) {
  // Two chunks; in the second t = 0.5 a − 0.25 b exactly, and a and b are independent.
  std::vector<double> pairs(36);
  const TensorView<double, 2> gram(pairs, {6, 6});
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (int n = 0; n < 4000; ++n) {
    const double a = normal(random), b = normal(random);
    const double f[] = {normal(random), 0.5 * a - 0.25 * b, normal(random), a, normal(random), b};
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 6; ++j) gram(i, j) += f[i] * f[j];
  }
  const std::size_t elite[] = {0};
  const auto turns = query_turns(gram, elite);
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_EQ(turns[0], 1.0);
  EXPECT_NEAR(std::abs(turns[1] - std::complex<double>(0.5, 0.25)), 0, 0.01);
  // The score of rotated queries: (0.5 + 0.25i) (q₁ + i q₂) makes 0.5 a − 0.25 b of a = q·k and b = q₂k₁ − q₁k₂.
  std::vector<float> rows{9, 1, 9, 2};  // q of both chunks
  const std::complex<double> exact[] = {1, {0.5, 0.25}};
  turn_rows(exact, rows, 1);
  const double k1 = 3, k2 = -5;
  EXPECT_EQ(rows[0], 9);
  EXPECT_NEAR(rows[1] * k1 + rows[3] * k2, 0.5 * (1 * k1 + 2 * k2) - 0.25 * (2 * k1 - 1 * k2), 1e-6);
}

TEST(QueryTurns, ChangeNothingWhereNothingIsKnown) {
  const std::vector<double> zeros(36);
  for (const auto& turn : query_turns({zeros, {6, 6}}, {})) EXPECT_NEAR(std::abs(turn - 1.0), 0, 1e-9);
}

}  // namespace
}  // namespace kvs
