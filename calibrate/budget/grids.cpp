#include <algorithm>
#include <array>
#include <utility>

#include "calibrate/budget/grid.h"

namespace kvs {

BudgetGrid budget_grid(std::string_view method) noexcept {
  constexpr auto kStandard = +[] { return std::vector{Json::object()}; };
  constexpr auto kStandardAlone = +[](const BudgetRoom&) { return std::vector{Json::object()}; };
  for (const BudgetGrid* const grid : {&kFreqkvGrid, &kLagkvGrid, &kFaedkvGrid, &kStoreGrid})
    if (grid->method == method) return *grid;
  return {method, kStandard, kStandardAlone};
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

GridAxis shares_of(std::string name, std::size_t tokens, std::span<const double> shares, std::size_t least) {
  GridAxis axis{std::move(name), {}};
  for (const double share : shares)
    axis.values.push_back(std::max(least, static_cast<std::size_t>(share * static_cast<double>(tokens))));
  return axis;
}

}  // namespace kvs
