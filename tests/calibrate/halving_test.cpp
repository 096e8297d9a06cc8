// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/halving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kvs {
namespace {

using ::testing::ElementsAre;

/// Trials measured one by one.
TrialLosses one_by_one(std::function<double(std::size_t candidate, std::size_t document)> loss) {
  return [loss = std::move(loss)](std::span<const CandidateTrial> round) {
    std::vector<double> losses;
    for (const auto& [candidate, document] : round) losses.push_back(loss(candidate, document));
    return losses;
  };
}

/// Runs successive halving on ten candidates over `documents`. Candidate 7 − n is worse than the best by n. Counts
/// losses.
struct Halved {
  explicit Halved(std::size_t documents)
      : found(successive_halving(
            10, documents, one_by_one([this](std::size_t candidate, std::size_t document) {
              EXPECT_TRUE(seen.emplace(candidate, document).second) << "measured twice";
              const double distance = std::abs(static_cast<double>(candidate) - 7);
              const double noise = document % 2 == 0 ? 1 : 9;                 // too much for an interval to be clear
              return distance * noise + 100 * static_cast<double>(document);  // documents differ more than candidates
            }))) {}

  std::set<std::pair<std::size_t, std::size_t>> seen;
  std::vector<HalvedCandidate> found;
};

TEST(Halving, MeasuresTheBetterHalfOnTwiceAsManyDocuments) {
  const Halved halved(5);
  std::vector<std::size_t> order, documents;
  for (const HalvedCandidate& one : halved.found) {
    order.push_back(one.candidate);
    documents.push_back(one.losses.size());
  }
  // 10 on one document, 5 on two, 3 on four and 2 on all five; equal distances are ordered by index.
  EXPECT_THAT(documents, ElementsAre(5, 5, 4, 2, 2, 1, 1, 1, 1, 1));
  EXPECT_THAT(order, ElementsAre(7, 6, 8, 5, 9, 4, 3, 2, 1, 0));
  EXPECT_EQ(halved.seen.size(), 10U + 5U + 2U * 3U + 2U);
  EXPECT_EQ(halving_losses(10, 5), halved.seen.size());
  EXPECT_DOUBLE_EQ(halved.found.front().mean(), 200);
  EXPECT_DOUBLE_EQ(halved.found.back().mean(), 7);
}

TEST(Halving, EndsOnceTheOtherIsClearlyWorse) {
  const std::vector<double> best{0, 1, 2, 3}, always_worse{1, 2, 3, 4}, mostly_worse{3, 0, 9, 2};
  const auto documents = [&](const std::vector<double>& other) {
    const auto found = successive_halving(2, best.size(), one_by_one([&](std::size_t candidate, std::size_t document) {
                                            return (candidate == 1 ? best : other)[document];
                                          }));
    EXPECT_EQ(found.front().candidate, 1U);
    EXPECT_EQ(found.front().losses.size(), found.back().losses.size());
    return found.front().losses.size();
  };
  EXPECT_EQ(documents(always_worse), 2U);
  EXPECT_EQ(documents(mostly_worse), 4U);
}

}  // namespace
}  // namespace kvs
