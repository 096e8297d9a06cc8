#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/parameters.h"

namespace kvs {

/// What a method brings to a calibration to a byte budget: settings (as Parameters takes them) without what sets the
/// size (CacheMethod::sized), which the budget gives.
struct BudgetGrid {
  std::string_view method;  // CacheMethod::name
  /// The paper's own setting, then what stands in for it where that reaches no small enough size.
  std::vector<Json> (*standards)();
  /// What is tried. Where the method has no size to choose, also what layers trade.
  std::vector<Json> (*settings)();
  /// The parameter, beside its size, of which a layer may have a value of its own; empty: none.
  std::string_view by_layer = {};
};

/// Each is defined in the file of its name; budget/grids.cpp lists them.
extern const BudgetGrid kFreqkvGrid, kLagkvGrid, kFaedkvGrid, kStoreGrid;

/// The method's, or one that has the method's standards alone.
BudgetGrid budget_grid(std::string_view method) noexcept;

/// A parameter and the values to try.
struct GridAxis {
  std::string name;
  std::vector<Json> values;
};
/// Every combination, the last axis running fastest.
std::vector<Json> combinations(const std::vector<GridAxis>& axes);

}  // namespace kvs
