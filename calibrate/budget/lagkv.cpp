#include "calibrate/budget/grid.h"

namespace kvs {
namespace {

/// L = 128 and S = 16 as the paper has them; a cache holds at least S + 2L tokens at times, so L falls where a budget
/// is smaller.
std::vector<Json> lagkv_standards() {
  std::vector<Json> all;
  for (const int lag : {128, 64, 32, 16, 8}) all.push_back({{"lag", lag}, {"sinks", 16}});
  return all;
}

std::vector<Json> lagkv_settings() {
  const std::vector<Json> lags{8, 16, 32, 64, 128}, sinks{1, 4, 16, 32};
  std::vector<Json> all = combinations(
      {{"lag", lags}, {"sinks", sinks}, {"variant", {"lag", "local"}}, {"value_weight", {0.25, 1, 4}}});
  for (Json& settings : combinations({{"lag", lags}, {"sinks", sinks}, {"variant", {"l2"}}}))
    all.push_back(std::move(settings));
  return all;
}

}  // namespace

constinit const BudgetGrid kLagkvGrid{"lagkv", lagkv_standards, lagkv_settings};

}  // namespace kvs
