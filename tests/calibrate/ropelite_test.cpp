// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/ropelite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "core/error.h"
#include "tests/calibrate/elite_golden.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kChunks = golden::kHeadDim / 2;

/// Documents in host memory, which is also the CPU backend's memory.
class HostStates final : public StateSource {
 public:
  HostStates(std::size_t tokens, std::size_t query_heads, std::size_t kv_heads)
      : tokens_(tokens), query_heads_(query_heads), kv_heads_(kv_heads), rotation_(tokens) {}

  void add(std::vector<float> q, std::vector<float> k) { states_.push_back({std::move(q), std::move(k)}); }

  std::size_t documents() const noexcept override { return states_.size(); }
  std::size_t tokens() const noexcept override { return tokens_; }
  Backend& backend() const noexcept override { return *backend_; }
  RopeTable rope(std::size_t) const override { return rotation_.table(); }
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override {
    for (const std::size_t layer : needs.layers) {
      DocumentStates states;
      states.document = document;
      states.layer = layer;
      states[StateKind::kQPre] = {std::span<const float>(states_[document].q),
                                  {query_heads_, tokens_, golden::kHeadDim}};
      states[StateKind::kKPre] = {std::span<const float>(states_[document].k), {kv_heads_, tokens_, golden::kHeadDim}};
      sink(states);
    }
  }

 private:
  struct Document {
    std::vector<float> q, k;
  };
  std::size_t tokens_, query_heads_, kv_heads_;
  golden::Rotation rotation_;
  std::vector<Document> states_;
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32);
};

HostStates real_states() {
  HostStates source(golden::kTokens, golden::kGroup, 1);
  source.add(golden::queries(), golden::keys());
  return source;
}

HostStates random_states(std::size_t documents, std::size_t tokens) {
  HostStates source(tokens, 4, 2);
  std::mt19937 generator(11);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::size_t heads) {
    std::vector<float> values(heads * tokens * golden::kHeadDim);
    std::ranges::generate(values, [&] { return normal(generator); });
    return values;
  };
  for (std::size_t document = 0; document < documents; ++document) {
    std::vector<float> q = draw(4);
    source.add(std::move(q), draw(2));
  }
  return source;
}

void expect_picks(const ElitePicks& picks, const Json& expected) {
  EXPECT_EQ(picks.chunks, expected["chunks"].get<std::vector<std::size_t>>());
  const auto errors = expected["errors"].get<std::vector<double>>();
  ASSERT_EQ(picks.errors.size(), errors.size());
  // The C library's cosine and PyTorch's differ in the last bit of f32, 6e-8 of each rotated channel.
  for (std::size_t pick = 0; pick < errors.size(); ++pick) EXPECT_NEAR(picks.errors[pick] / errors[pick], 1, 1e-6);
}

class RopeliteTest : public ::testing::Test {
 protected:
  std::vector<std::vector<ElitePicks>> search(HostStates& source, DistanceSearch search) {
    while (!search.done()) {
      for (std::size_t document = 0; document < source.documents(); ++document) search.add(*ops_, source, document);
      search.finish_pass();
    }
    return search.picks();
  }
  RopeStatistics statistics(HostStates& source, EliteGeometry geometry) {
    RopeStatistics result(std::move(geometry), true);
    for (std::size_t document = 0; document < source.documents(); ++document) result.add(*ops_, source, document);
    return result;
  }
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32);
  std::unique_ptr<CalibrationOps> ops_ = make_calibration_ops(*backend_);
};

TEST_F(RopeliteTest, SquaredSearchAgreesWithPyTorchOnRealStates) {
  HostStates source = real_states();
  const RopeStatistics sums = statistics(source, {{14}, golden::kGroup, 1, kChunks});
  const Json expected = golden::expected();
  const std::vector<double> heads = sums.grams(0, Granularity::kQueryHead), group = sums.grams(0, Granularity::kKvHead);
  const TensorView<const double, 3> grams(heads, {golden::kGroup, kChunks, kChunks});
  for (std::size_t head = 0; head < golden::kGroup; ++head)
    expect_picks(pick_elite(grams.slice(head), 8), expected["head_l2"][head]);
  expect_picks(pick_elite(TensorView<const double, 2>(group, {kChunks, kChunks}), 8), expected["group_l2"]);
}

TEST_F(RopeliteTest, FirstPowerSearchAgreesWithPyTorchOnRealStates) {
  HostStates source = real_states();
  const EliteGeometry geometry{{14}, golden::kGroup, 1, kChunks};
  const Json expected = golden::expected();
  const auto heads = search(source, DistanceSearch(geometry, Granularity::kQueryHead, 8));
  for (std::size_t head = 0; head < golden::kGroup; ++head) expect_picks(heads[0][head], expected["head_l1"][head]);
  expect_picks(search(source, DistanceSearch(geometry, Granularity::kKvHead, 8))[0][0], expected["group_l1"]);
}

TEST_F(RopeliteTest, ErrorsAddOverDocumentsAndLayersStayApart) {
  HostStates both = random_states(2, 40);
  const EliteGeometry geometry{{3, 5}, 4, 2, kChunks};
  const RopeStatistics sums = statistics(both, geometry);
  RopeStatistics first(geometry, false), second(geometry, false);
  first.add(*ops_, both, 0);
  second.add(*ops_, both, 1);
  for (std::size_t i = 0; i < sums.gram.size(); ++i) ASSERT_EQ(sums.gram[i], first.gram[i] + second.gram[i]);
  EXPECT_EQ(sums.grams(0, Granularity::kKvHead), sums.grams(1, Granularity::kKvHead));  // the source's layers are equal
}

TEST_F(RopeliteTest, FirstPowerErrorsOfAGivenOrderEndAtZeroWhenAllIsRotated) {
  HostStates source = random_states(1, 20);
  std::vector<std::size_t> order(kChunks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::reverse(order);
  const auto picks = search(source, DistanceSearch({{0}, 4, 2, kChunks}, Granularity::kKvHead, {{order, order}}));
  EXPECT_EQ(picks[0][1].chunks, order);
  EXPECT_GT(picks[0][1].errors.front(), 1.0);
  EXPECT_EQ(picks[0][1].errors.back(), 0.0);
}

TEST_F(RopeliteTest, ContributionIsTheMeanQueryNormTimesTheMeanKeyNorm) {
  HostStates source(2, 2, 1);
  std::vector<float> q(2 * 2 * golden::kHeadDim), k(2 * golden::kHeadDim);
  q[7] = 3, q[7 + kChunks] = 4;     // head 0, token 0: ‖q_7‖ = 5
  q[2 * golden::kHeadDim + 7] = 1;  // head 1, token 0: ‖q_7‖ = 1
  k[golden::kHeadDim + 7] = 2;      // token 1: ‖k_7‖ = 2, so a mean of 1
  source.add(q, k);
  const RopeStatistics sums = statistics(source, {{0}, 2, 1, kChunks});
  EXPECT_DOUBLE_EQ(sums.contributions(0, Granularity::kKvHead)[7],
                   (5.0 + 1.0) / 4 * 1.0);  // mean over 2 heads, 2 tokens
  EXPECT_DOUBLE_EQ(sums.contributions(0, Granularity::kQueryHead)[kChunks + 7], 0.5 * 1.0);
  EXPECT_EQ(sums.contributions(0, Granularity::kKvHead)[6], 0.0);
}

TEST(PickElite, FollowsTheGramMatrixByHand) {
  // Σ(δ0 + δ1 + δ2)²: without 0: 5 + 1 − 4 = 2; without 1: 4 + 1 + 0 = 5; without 2: 4 + 5 + 2 = 11. Then {1} or {2}
  // alone: 5 or 1, so 1 goes next and leaves 1.
  const std::vector<double> gram{4, 1, 0, 1, 5, -2, 0, -2, 1};
  const ElitePicks picks = pick_elite(TensorView<const double, 2>(gram, {3, 3}), 3);
  EXPECT_THAT(picks.chunks, ElementsAre(0, 1, 2));
  EXPECT_THAT(picks.errors, ElementsAre(2.0, 1.0, 0.0));
  EXPECT_THAT(errors_of(TensorView<const double, 2>(gram, {3, 3}), {2, 0}).errors, ElementsAre(11.0, 5.0));
}

TEST(PickElite, TakesTheLowestChunkOfEqualOnes) {
  const std::vector<double> gram{1, 0, 0, 0, 2, 0, 0, 0, 2};
  EXPECT_THAT(pick_elite(TensorView<const double, 2>(gram, {3, 3}), 2).chunks, ElementsAre(1, 2));
}

TEST(PickElite, RefusesMoreChunksThanThereAre) {
  const std::vector<double> gram(4, 1.0);
  EXPECT_THROW(pick_elite(TensorView<const double, 2>(gram, {2, 2}), 3), Error);
  EXPECT_THROW(pick_elite(TensorView<const double, 2>(gram, {2, 2}), 0), Error);
}

TEST(BaselineChunks, AreAsDefined) {
  const std::vector<double> score{0.5, 3, 1, 3};
  EXPECT_THAT(baseline_chunks(EliteBaseline::kUniform, 32, 8, {}), ElementsAre(0, 4, 8, 13, 17, 22, 26, 31));
  EXPECT_THAT(baseline_chunks(EliteBaseline::kUniform, 32, 1, {}), ElementsAre(0));
  EXPECT_THAT(baseline_chunks(EliteBaseline::kHigh, 4, 2, {}), ElementsAre(0, 1));
  EXPECT_THAT(baseline_chunks(EliteBaseline::kLow, 4, 3, {}), ElementsAre(1, 2, 3));
  EXPECT_THAT(baseline_chunks(EliteBaseline::kContribution, 4, 3, score), ElementsAre(1, 3, 2));
}

/// Random Gram matrices X Xᵀ.
std::vector<double> random_grams(std::size_t heads, std::size_t chunks, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> grams(heads * chunks * chunks);
  for (std::size_t head = 0; head < heads; ++head) {
    for (int sample = 0; sample < 4; ++sample) {
      std::vector<double> x(chunks);
      std::ranges::generate(x, [&] { return normal(generator); });
      for (std::size_t i = 0; i < chunks * chunks; ++i)
        grams[head * chunks * chunks + i] += x[i / chunks] * x[i % chunks];
    }
  }
  return grams;
}

TEST(PickDisjoint, NoExchangeOfOneChunkLowersTheTotal) {
  constexpr std::size_t kHeads = 2, kCount = 3, kSize = 8;
  const std::vector<double> values = random_grams(kHeads, kSize, 4);
  const TensorView<const double, 3> grams(values, {kHeads, kSize, kSize});
  const std::vector<ElitePicks> picks = pick_disjoint(grams, kCount);
  std::vector<int> owner(kSize, -1);
  for (std::size_t head = 0; head < kHeads; ++head) {
    ASSERT_EQ(picks[head].chunks.size(), kCount);
    for (const std::size_t chunk : picks[head].chunks) {
      EXPECT_EQ(owner[chunk], -1) << "owned twice";
      owner[chunk] = static_cast<int>(head);
    }
  }
  const auto total = [&](const std::vector<int>& owners) {
    double sum = 0;
    for (std::size_t head = 0; head < kHeads; ++head) {
      std::vector<std::size_t> chunks;
      for (std::size_t chunk = 0; chunk < kSize; ++chunk)
        if (owners[chunk] == static_cast<int>(head)) chunks.push_back(chunk);
      sum += errors_of(grams.slice(head), chunks).errors.back();
    }
    return sum;
  };
  const double found = total(owner);
  EXPECT_NEAR(picks[0].errors.back() + picks[1].errors.back(), found, 1e-12 * found);
  for (std::size_t a = 0; a < kSize; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::vector<int> other = owner;
      std::swap(other[a], other[b]);
      EXPECT_GE(total(other), found * (1 - 1e-9)) << a << ' ' << b;
    }
  }
}

TEST(PickDisjoint, OneHeadOfIndependentChunksGetsTheLargest) {
  const std::vector<double> gram{1, 0, 0, 0, 9, 0, 0, 0, 4};  // uncorrelated: the greedy answer is exact
  const std::vector<ElitePicks> picks = pick_disjoint(TensorView<const double, 3>(gram, {1, 3, 3}), 2);
  EXPECT_THAT(picks[0].chunks, ElementsAre(1, 2));
  EXPECT_THAT(picks[0].errors, ElementsAre(5.0, 1.0));
}

TEST(PickDisjoint, RefusesMoreChunksThanTheHeadsCanShare) {
  const std::vector<double> grams(2 * 3 * 3, 1.0);
  EXPECT_THROW(pick_disjoint(TensorView<const double, 3>(grams, {2, 3, 3}), 2), Error);
}

}  // namespace
}  // namespace kvs
