#include "ranks/taker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

PendingResult result_of(int value) {
  return [value] { return UnitResult{Json(value)}; };
}

TEST(Taker, TakesInOrderWhatComesInAny) {
  std::vector<int> taken;
  {
    Taker taker(2, [&](std::size_t, const UnitResult& result) { taken.push_back(result.record.get<int>()); });
    for (const int unit : {4, 3, 5, 2}) taker.give(static_cast<std::size_t>(unit), 8, result_of(unit));
    taker.finish(6);
    EXPECT_EQ(taker.next(), 6U);
  }
  EXPECT_THAT(taken, ElementsAre(2, 3, 4, 5));
}

TEST(Taker, HasRoomForTheNextResultWhateverItsSize) {
  Taker taker(0, [](std::size_t, const UnitResult&) {});
  taker.give(1, Ranks::kMostHeldBytes, result_of(1));
  EXPECT_FALSE(taker.has_room(2, 1));
  EXPECT_TRUE(taker.has_room(0, 2 * Ranks::kMostHeldBytes));
  taker.give(0, 1, result_of(0));
  taker.finish(2);
  EXPECT_TRUE(taker.has_room(5, Ranks::kMostHeldBytes));
}

TEST(Taker, ThrowsWhereItIsWaitedForWhatTakingThrew) {
  Taker taker(0, [](std::size_t unit, const UnitResult&) {
    if (unit == 1) throw Error(ErrorCode::kEnvironment, "disk", "is full");
  });
  taker.give(0, 1, result_of(0));
  taker.give(1, 1, result_of(1));
  EXPECT_THROW(taker.finish(2), Error);
  EXPECT_EQ(taker.next(), 1U);
}

TEST(Taker, LooksForFailuresElsewhereWhileItIsWaitedFor) {
  Taker taker(
      0, [](std::size_t, const UnitResult&) {}, [] { throw Error(ErrorCode::kEnvironment, "rank 1", "has ended"); });
  EXPECT_THROW(taker.finish(1), Error);
}

}  // namespace
}  // namespace kvs
