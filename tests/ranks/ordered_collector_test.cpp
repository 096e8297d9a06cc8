// SPDX-License-Identifier: Apache-2.0
#include "ranks/ordered_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

PendingResult result_of(int value) {
  return [value] { return UnitResult{Json(value)}; };
}

TEST(OrderedCollector, TakesInOrderWhatComesInAny) {
  std::vector<int> taken;
  {
    OrderedCollector collector(
        2, [&](std::size_t, const UnitResult& result) { taken.push_back(result.record.get<int>()); });
    for (const int unit : {4, 3, 5, 2}) collector.give(static_cast<std::size_t>(unit), 8, result_of(unit));
    collector.finish(6);
    EXPECT_EQ(collector.next(), 6U);
  }
  EXPECT_THAT(taken, ElementsAre(2, 3, 4, 5));
}

TEST(OrderedCollector, HasRoomForTheNextResultWhateverItsSize) {
  OrderedCollector collector(0, [](std::size_t, const UnitResult&) {});
  collector.give(1, Ranks::kMaxHeldBytes, result_of(1));
  EXPECT_FALSE(collector.has_room(2, 1));
  EXPECT_TRUE(collector.has_room(0, 2 * Ranks::kMaxHeldBytes));
  collector.give(0, 1, result_of(0));
  collector.finish(2);
  EXPECT_TRUE(collector.has_room(5, Ranks::kMaxHeldBytes));
}

TEST(OrderedCollector, ThrowsWhereItIsWaitedForWhatTakingThrew) {
  OrderedCollector collector(0, [](std::size_t unit, const UnitResult&) {
    if (unit == 1) throw Error(ErrorCode::kEnvironment, "disk", "is full");
  });
  collector.give(0, 1, result_of(0));
  collector.give(1, 1, result_of(1));
  EXPECT_THROW(collector.finish(2), Error);
  EXPECT_EQ(collector.next(), 1U);
}

TEST(OrderedCollector, LooksForFailuresElsewhereWhileItIsWaitedFor) {
  OrderedCollector collector(
      0, [](std::size_t, const UnitResult&) {}, [] { throw Error(ErrorCode::kEnvironment, "rank 1", "has ended"); });
  EXPECT_THROW(collector.finish(1), Error);
}

}  // namespace
}  // namespace kvs
