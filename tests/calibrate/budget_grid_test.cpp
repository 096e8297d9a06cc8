// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

/// Returns the values of a parameter in a method's grid for a budget.
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
  EXPECT_THAT(tried("faedkv", quarter, "recent"), ElementsAre(55, 82, 96, 110));  // of 256 − 128 − 10 − 8
  EXPECT_THAT(tried("faedkv", quarter, "chunks"), ElementsAre((1024 - 128) / 8));
  // Little room.
  EXPECT_THAT(tried("lagkv", {.tokens = 64, .rows = 16}, "lag"), ElementsAre(8));
  EXPECT_THAT(tried("lagkv", {.tokens = 64, .rows = 16}, "sinks"), ElementsAre(2));
  EXPECT_THAT(tried("faedkv", {.tokens = 64, .rows = 8, .later = 16}, "recent"), ElementsAre(0));
  EXPECT_THAT(tried("faedkv", {.tokens = 64, .rows = 8, .later = 16}, "sinks"), ElementsAre(1));
}

TEST(BudgetGrid, RecentTokensOfFaedkvLeaveRoomForChunksAndSinksThatAreGiven) {
  const auto most = [](const BudgetRoom& room) { return *tried("faedkv", room, "recent").rbegin(); };
  BudgetRoom half{.tokens = 1024, .rows = 512, .later = 256};
  EXPECT_EQ(most(half), 256 - 10 - 8);
  half.given = {{"chunks", 22}, {"sinks", 64}};
  EXPECT_EQ(most(half), 256 - 64 - 35);  // a 22nd of 768 tokens is less than 35
  half.given = {{"chunks", {22, 30}}};   // of layers: the grid computes them itself
  EXPECT_EQ(most(half), 256 - 10 - 8);
  // 96 chunks need 96 bins, of 192 tokens.
  EXPECT_EQ(most({.tokens = 1024, .rows = 1000, .later = 256}), 768 - 2 * 96 - 10 - 8);
}

TEST(BudgetGrid, LeavesKeysOrValuesTheirLowestChunkAlone) {
  const std::vector<Json> all = budget_grid("faedkv").settings({.tokens = 1024, .rows = 256, .later = 128});
  ASSERT_EQ(all.size(), 12U);  // for four shares of recent tokens
  const Json lowest = Json::array({0});
  for (std::size_t n = 0; n < all.size(); ++n) {
    EXPECT_EQ(all[n].at("recent"), all[n / 3 * 3].at("recent"));
    EXPECT_EQ(all[n].at("sinks"), 10);
    EXPECT_EQ(all[n].value("kept_v", Json()), n % 3 == 1 ? lowest : Json());
    EXPECT_EQ(all[n].value("kept", Json()), n % 3 == 2 ? lowest : Json());
  }
}

TEST(BudgetGrid, HasFewSettingsAndAStandardForEveryMethod) {
  for (const char* method : {"freqkv", "lagkv", "faedkv", "streaming"}) {
    EXPECT_LE(budget_grid(method).settings({1024, 512, 256}).size(), 20U) << method;
    EXPECT_FALSE(budget_grid(method).standards().empty()) << method;
  }
  EXPECT_EQ(budget_grid("streaming").settings({1024, 512, 256}), std::vector{Json::object()});
}

/// Keys before RoPE and values of `layers` of one head.
Spectrum spectrum_of(const std::vector<std::vector<double>>& layers) {
  Spectrum spectrum;
  spectrum.states = {StateKind::kKPre, StateKind::kV};
  for (const StateKind state : {StateKind::kKPre, StateKind::kV}) {
    PowerTable& table = spectrum.without_sinks[state] = PowerTable(layers.size(), 1, layers.front().size());
    for (std::size_t n = 0; n < layers.size(); ++n) std::ranges::copy(layers[n], table.row(n, 0).begin());
  }
  for (std::size_t n = 0; n < layers.size(); ++n) spectrum.layers.push_back(n);
  return spectrum;
}

std::vector<double> proposed_gammas(const Spectrum& spectrum, const Json& settings) {
  std::vector<double> gammas;
  Parameters parameters({{settings, "", ErrorCode::kUsage}}, spectrum.layers.size());
  for (const Json& gamma : budget_grid("freqkv").proposal.by_spectra(spectrum, parameters)) gammas.push_back(gamma);
  return gammas;
}

// If m of ten bins stay, a flat layer loses 10 − m ninths of its energy without DC, and a layer with all energy in the
// lowest bin loses nothing for m of two or more. Eight and two bins lose the same, five on average.
TEST(BudgetGrid, LayersOfFreqkvKeepWhatLosesTheSameShareOfTheirEnergy) {
  using ::testing::ElementsAre;
  const Spectrum spectrum = spectrum_of({{99, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 7, 0, 0, 0, 0, 0, 0, 0, 0}});
  Json settings{{"cache_size", 104}, {"sinks", 4}, {"gamma", 0.5}, {"recent", 0}, {"rope", "pre"}, {"band", "low"}};
  EXPECT_THAT(proposed_gammas(spectrum, settings), ElementsAre(0.8, 0.2));  // 80 and 20 of 100 slots
  settings["recent"] = 50;                                                  // 25 of 50 smoothed slots at γ = 0.75
  settings["gamma"] = 0.75;
  EXPECT_THAT(proposed_gammas(spectrum, settings), ElementsAre(0.9, 0.6));
  EXPECT_EQ(budget_grid("freqkv").proposal.parameter, "gamma");
  for (const auto& [name, value] : {std::pair("recent", Json{50, 25}), {"band", Json("high")}}) {
    Json others = settings;
    others[name] = value;
    EXPECT_THAT(proposed_gammas(spectrum, others), ElementsAre(0.75, 0.75)) << name;
  }
}

TEST(BudgetGrid, EqualSpectraGiveEveryLayerTheSameGammaAndConstantStatesAreNoLoss) {
  const Json settings{{"cache_size", 56}, {"sinks", 4},    {"gamma", 0.95},
                      {"recent", 40},     {"rope", "pre"}, {"band", "low"}};
  const std::vector<double> flat(13, 1.0), constant{5, 0, 0, 0};
  const std::vector<double> same = proposed_gammas(spectrum_of({flat, flat}), settings);
  EXPECT_EQ(same[0], same[1]);
  for (const double gamma : proposed_gammas(spectrum_of({constant, constant}), settings)) {
    const auto kept = static_cast<std::size_t>(gamma * 52);
    EXPECT_GT(kept, 40U);
    EXPECT_LT(kept, 52U);
  }
}

TEST(BudgetGrid, SharesHaveALeastValue) {
  constexpr std::array kShares{0.1, 0.25, 0.5};
  EXPECT_EQ(shares_of("x", 30, kShares, 5).values, (std::vector<Json>{5, 7, 15}));
}

}  // namespace
}  // namespace kvs
