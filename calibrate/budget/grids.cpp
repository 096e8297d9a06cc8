#include <algorithm>
#include <array>

#include "calibrate/budget/grid.h"

namespace kvs {

BudgetGrid budget_grid(std::string_view method) noexcept {
  constexpr auto kStandardAlone = +[] { return std::vector{Json::object()}; };
  for (const BudgetGrid* const grid : {&kFreqkvGrid, &kLagkvGrid, &kFaedkvGrid, &kStoreGrid})
    if (grid->method == method) return *grid;
  return {method, kStandardAlone, kStandardAlone};
}

std::vector<Json> combinations(const std::vector<GridAxis>& axes) {
  std::vector<Json> all{Json::object()};
  for (const GridAxis& axis : axes) {
    std::vector<Json> longer;
    for (const Json& settings : all)
      for (const Json& value : axis.values) {
        longer.push_back(settings);
        longer.back()[axis.name] = value;
      }
    all = std::move(longer);
  }
  return all;
}

}  // namespace kvs
