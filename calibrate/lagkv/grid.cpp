// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "calibrate/calibration.h"

namespace kvs::inline calibrate {
namespace {

/// L = 128 and S = 16 as in the paper. A cache at times holds S + 2L tokens or more, so small budgets need a smaller L.
std::vector<Json> lagkv_standards() {
  std::vector<Json> all;
  for (const int lag : {128, 64, 32, 16, 8}) all.push_back({{"lag", lag}, {"sinks", 16}});
  return all;
}

/// Between L and 2L tokens are recent, so their share of the budget matters; the others are selected tokens.
std::vector<Json> lagkv_settings(const BudgetRoom& room) {
  constexpr std::array kLags{0.25, 0.3125, 0.375, 0.4375};
  constexpr std::size_t kMinLag = 8, kMaxSinks = 16;
  return combinations(
      {shares_of("lag", room.rows, kLags, kMinLag), {"sinks", {room.sinks(kMaxSinks)}}, {"value_weight", {1, 4}}});
}

}  // namespace

constinit const Calibration kLagkvCalibration{
    .method = &kLagkvMethod, .grid = {.standards = lagkv_standards, .settings = lagkv_settings, .priority = 3}};

}  // namespace kvs::inline calibrate
