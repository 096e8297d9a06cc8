// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/grid.h"

#include <algorithm>
#include <array>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/registry.h"

namespace kvs::inline calibrate {

std::size_t BudgetRoom::count(const std::string& parameter, std::size_t own) const {
  const auto found = given.find(parameter);
  return found != given.end() && found->is_number_integer() && *found >= 0 ? found->get<std::size_t>() : own;
}

std::size_t BudgetRoom::sinks(std::size_t most) const {
  constexpr std::size_t kRowsOfASink = 8;
  return count("sinks", std::min(most, rows / kRowsOfASink));
}

BudgetGrid budget_grid(std::string_view method) noexcept {
  constexpr auto kStandard = +[] { return std::vector{Json::object()}; };
  constexpr auto kStandardAlone = +[](const BudgetRoom&) { return std::vector{Json::object()}; };
  const Method* const found = find_method(method);
  const Calibration* const calibration = found == nullptr ? nullptr : find_calibration(*found);
  if (calibration != nullptr && calibration->grid.settings != nullptr) return calibration->grid;
  return {.standards = kStandard, .settings = kStandardAlone};
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

}  // namespace kvs::inline calibrate
