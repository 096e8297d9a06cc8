#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

/// The values of a parameter that a method's grid has in a room.
std::set<int> tried(const char* method, const BudgetRoom& room, const char* parameter) {
  std::set<int> values;
  for (const Json& settings : budget_grid(method).settings(room)) values.insert(settings.at(parameter).get<int>());
  return values;
}

TEST(BudgetGrid, SharesTheRoomOut) {
  using ::testing::ElementsAre;
  const BudgetRoom quarter{.tokens = 1024, .rows = 256, .later = 128};
  EXPECT_THAT(tried("lagkv", quarter, "lag"), ElementsAre(64, 80, 96, 112));
  EXPECT_THAT(tried("lagkv", quarter, "sinks"), ElementsAre(16));
  EXPECT_THAT(tried("freqkv", quarter, "recent"), ElementsAre(128, 192, 217, 230));
  EXPECT_THAT(tried("faedkv", quarter, "recent"), ElementsAre(64, 96, 112, 120));  // of 256 − 128
  EXPECT_THAT(tried("faedkv", quarter, "chunks"), ElementsAre((1024 - 128) / 8));
  // Little room.
  EXPECT_THAT(tried("lagkv", {.tokens = 64, .rows = 16}, "lag"), ElementsAre(8));
  EXPECT_THAT(tried("lagkv", {.tokens = 64, .rows = 16}, "sinks"), ElementsAre(2));
  EXPECT_THAT(tried("faedkv", {.tokens = 64, .rows = 8, .later = 16}, "recent"), ElementsAre(0));
}

TEST(BudgetGrid, HasFewSettingsAndAStandardForEveryMethod) {
  for (const char* method : {"freqkv", "lagkv", "faedkv", "streaming"}) {
    EXPECT_LE(budget_grid(method).settings({1024, 512, 256}).size(), 20U) << method;
    EXPECT_FALSE(budget_grid(method).standards().empty()) << method;
  }
  EXPECT_EQ(budget_grid("streaming").settings({1024, 512, 256}), std::vector{Json::object()});
}

TEST(BudgetGrid, SharesHaveALeastValue) {
  constexpr std::array kShares{0.1, 0.25, 0.5};
  EXPECT_EQ(shares_of("x", 30, kShares, 5).values, (std::vector<Json>{5, 7, 15}));
}

}  // namespace
}  // namespace kvs
