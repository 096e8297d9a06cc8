// SPDX-License-Identifier: Apache-2.0
#include "ranks/unit_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::ElementsAre;

/// Returns the units that a rank gets if no other rank asks and all are taken at once.
std::vector<std::size_t> all_of(UnitQueue& queue, std::size_t rank, std::size_t taken) {
  std::vector<std::size_t> units;
  while (const auto unit = queue.take(rank, taken)) units.push_back(*unit);
  return units;
}

TEST(UnitQueue, GivesUnitsInOrderToWhoAsks) {
  UnitQueue queue({.first = 3, .last = 6}, 2);
  EXPECT_EQ(queue.take(1, 3), 3U);
  EXPECT_EQ(queue.take(0, 3), 4U);
  EXPECT_EQ(queue.take(0, 3), 5U);
  EXPECT_EQ(queue.take(1, 3), std::nullopt);
  EXPECT_TRUE(queue.is_over(0));
}

TEST(UnitQueue, GivesABoundUnitToItsRankAlone) {
  UnitQueue queue({.first = 4, .last = 11, .bound = true}, 3);
  EXPECT_THAT(all_of(queue, 0, 11), ElementsAre(6, 9));
  EXPECT_TRUE(queue.is_over(0));
  EXPECT_FALSE(queue.is_over(1));
  EXPECT_THAT(all_of(queue, 1, 11), ElementsAre(4, 7, 10));
  EXPECT_THAT(all_of(queue, 2, 11), ElementsAre(5, 8));
}

TEST(UnitQueue, WaitsForTheFirstUnitThatIsNotTaken) {
  UnitQueue queue({.last = 100}, 2);
  const auto window = all_of(queue, 0, 0);
  EXPECT_EQ(window.size(), 2 * UnitQueue::kWindow);
  EXPECT_FALSE(queue.is_over(0));
  EXPECT_EQ(queue.take(1, 1), window.size());
  EXPECT_EQ(queue.take(1, 1), std::nullopt);
}

}  // namespace
}  // namespace kvs
