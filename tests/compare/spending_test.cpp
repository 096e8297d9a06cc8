#include "compare/spending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::ElementsAre;

const std::vector<std::size_t> kAll{0, 1, 2, 3};

TEST(Spending, OneDocumentBeatsByAMultipleAlone) {
  const std::vector<CellScores> cells{{100, {0.1}}, {100, {0.39}}, {100, {0.41}}, {90, {0.5}}};
  EXPECT_THAT(beaten(cells, kAll), ElementsAre(false, false, true, false));
}

TEST(Spending, MoreDocumentsBeatByThePairedInterval) {
  // Twice the divergence in each document is clear, twice in the mean with ratios of 0.5 to 8 is not.
  const std::vector<CellScores> cells{
      {100, {0.1, 0.2, 0.1}}, {100, {0.2, 0.41, 0.2}}, {100, {0.05, 0.2, 0.8}}, {99, {0.9, 0.9, 0.9}}};
  EXPECT_THAT(beaten(cells, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, FewerBytesBeatMoreBytesAndNeverTheOtherWayRound) {
  const std::vector<CellScores> cells{{50, {0.1}}, {100, {1}}, {40, {1}}, {100, {}}};
  EXPECT_THAT(beaten(cells, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, DocumentsThatOnlyOneHasDoNotCount) {
  const std::vector<CellScores> cells{{100, {0.1, 9, 9}}, {100, {0.5}}, {100, {0.11, 0.1, 0.1}}, {1, {}}};
  EXPECT_THAT(beaten(cells, kAll), ElementsAre(false, true, false, false));
}

TEST(Spending, TheFrontIsOfCellsWithTheMostDocuments) {
  const std::vector<CellScores> cells{{100, {0.1, 0.1}}, {50, {0.2, 0.2}}, {60, {0.2, 0.2}},
                                      {10, {0.01}},      {50, {0.3, 0.3}}, {70, {}}};
  EXPECT_THAT(pareto_front(cells), ElementsAre(1, 0));
}

TEST(Spending, TheFrontIsTheMostPromising) {
  const std::vector<CellScores> cells{{100, {0.3}}, {100, {0.1}}, {50, {0.21}}, {50, {0.2}}};
  EXPECT_THAT(most_promising(cells, kAll, 2), ElementsAre(1, 3));
  EXPECT_THAT(most_promising(cells, kAll, 3), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace kvs
