// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/racing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::ElementsAre;

const std::vector<std::size_t> kAll{0, 1, 2, 3};

TEST(Spending, OneDocumentBeatsByAMultipleAlone) {
  const std::vector<RaceScores> configurations{{100, {0.1}}, {100, {0.39}}, {100, {0.41}}, {90, {0.5}}};
  EXPECT_THAT(is_dominated(configurations, kAll), ElementsAre(false, false, true, false));
}

TEST(Spending, MoreDocumentsBeatByThePairedInterval) {
  // Twice the divergence in each document is clear, twice in the mean with ratios of 0.5 to 8 is not.
  const std::vector<RaceScores> configurations{
      {100, {0.1, 0.2, 0.1}}, {100, {0.2, 0.41, 0.2}}, {100, {0.05, 0.2, 0.8}}, {99, {0.9, 0.9, 0.9}}};
  EXPECT_THAT(is_dominated(configurations, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, FewerBytesBeatMoreBytesAndNeverTheOtherWayRound) {
  const std::vector<RaceScores> configurations{{50, {0.1}}, {100, {1}}, {40, {1}}, {100, {}}};
  EXPECT_THAT(is_dominated(configurations, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, DocumentsThatOnlyOneHasDoNotCount) {
  const std::vector<RaceScores> configurations{{100, {0.1, 9, 9}}, {100, {0.5}}, {100, {0.11, 0.1, 0.1}}, {1, {}}};
  EXPECT_THAT(is_dominated(configurations, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, TheFrontIsOfConfigurationsWithTheMostDocuments) {
  const std::vector<RaceScores> configurations{{100, {0.1, 0.1}}, {50, {0.2, 0.2}}, {60, {0.2, 0.2}},
                                               {10, {0.01}},      {50, {0.3, 0.3}}, {70, {}}};
  EXPECT_THAT(pareto_front(configurations), ElementsAre(1, 0));
}

TEST(Spending, TheFrontIsTheMostPromising) {
  const std::vector<RaceScores> configurations{{100, {0.3}}, {100, {0.1}}, {50, {0.21}}, {50, {0.2}}};
  EXPECT_THAT(most_promising(configurations, kAll, 2), ElementsAre(1, 3));
  EXPECT_THAT(most_promising(configurations, kAll, 3), ElementsAre(1, 2, 3));
}

class Affordable : public ::testing::Test {
 protected:
  /// A second document for all four configurations, of four; each takes 10 s a document, and the front (0 and 1) needs
  /// 40 s more for the last two.
  Round within(double seconds) const { return fit_to_time({1, 2, kAll}, configurations_, 4, seconds); }

  std::vector<RaceScores> configurations_{{50, {0.2}, 10}, {100, {0.1}, 10}, {60, {0.5}, 10}, {60, {0.3}, 10}};
};

TEST_F(Affordable, KeepsTimeForTheFrontsOtherDocuments) {
  EXPECT_THAT(within(80).configurations, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(within(79).configurations, ElementsAre(0, 1, 3));
  EXPECT_THAT(within(60).configurations, ElementsAre(0, 1));
  EXPECT_EQ(within(60).last, 2u);
}

TEST_F(Affordable, OfManyDocumentsKeepsTimeForTheFirstAlone) {
  // The front's passes over the second to the eighth of 666 documents take 140 s.
  EXPECT_THAT(fit_to_time({1, 2, kAll}, configurations_, 666, 160).configurations, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(fit_to_time({1, 2, kAll}, configurations_, 666, 159).configurations, ElementsAre(0, 1, 3));
}

TEST_F(Affordable, OfAClockThatStandsStillIsNothingOrAll) {
  for (RaceScores& one : configurations_) one.seconds = 0;
  EXPECT_EQ(within(1).last, 2u);
  EXPECT_EQ(within(-1).last, 1u);
}

TEST_F(Affordable, LeavesDocumentsOutWhereTheFrontAloneTakesTooLong) {
  EXPECT_THAT(within(20).configurations, ElementsAre(0, 1));
  EXPECT_EQ(within(20).last, 2u);
  EXPECT_EQ(within(19).last, 1u);
  EXPECT_EQ(within(-1).last, 1u);
}

}  // namespace
}  // namespace kvs
