// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/spectrum.h"
#include "caches/parameters.h"

namespace kvs::inline calibrate {

/// The size of a document under a budget; settings divide it.
struct BudgetRoom {
  std::size_t tokens = 0;       // of a document
  std::size_t rows = 0;         // number of tokens whose keys and values fit the budget
  std::size_t later = 0;        // number of tokens after a prefix that is compressed at its end
  Json given = Json::object();  // given settings: they replace those of a grid

  /// Returns the rows for the tokens of the prefix.
  std::size_t of_prefix() const noexcept { return rows - std::min(rows, later); }
  /// Returns the number that is given for all layers, otherwise `own`.
  std::size_t count(const std::string& parameter, std::size_t own) const;
  /// Returns the given number of sinks, otherwise an eighth of the rows, at most `most`.
  std::size_t sinks(std::size_t most) const;
};

/// Values of one parameter by layer, at the same bytes, that are proposed in addition to those of the settings.
struct LayerProposal {
  std::string_view parameter = {};
  /// [n] value of spectrum.layers[n], from the DCT of its states.
  std::vector<Json> (*by_spectra)(const Spectrum& spectrum, Parameters& settings) = nullptr;
};

/// A method's grid for a calibration to a byte budget: settings (as for Parameters) without the parameters that set the
/// size (Method::settings_for_share), which follow from the budget.
struct BudgetGrid {
  /// Returns the paper's own setting, then substitutes for budgets that it cannot reach.
  std::vector<Json> (*standards)() = nullptr;
  /// Returns the settings to try: few, along the axes that were found to matter (docs/budgets.md). For a method without
  /// a size to choose, layers also trade these.
  std::vector<Json> (*settings)(const BudgetRoom& room) = nullptr;
  LayerProposal proposal = {};
  /// Returns the demand of settings on the program that runs them. Of settings with equal bytes that documents do not
  /// distinguish, the one with the lowest demand is chosen. nullptr: all are equal.
  std::size_t (*demand)(const Json& settings) = nullptr;
  /// If time is short, calibrations with low numbers come first: those that gain most for their time.
  int priority = 0;
};

/// Returns the method's grid; for a method without one, a grid with its default settings only.
BudgetGrid budget_grid(std::string_view method) noexcept;

/// A parameter and the values to try.
struct GridAxis {
  std::string name;
  std::vector<Json> values;
};
/// Returns every combination; the last axis varies fastest.
std::vector<Json> combinations(const std::vector<GridAxis>& axes);
/// Returns an axis of shares of a number of tokens: whole numbers, at least `least`.
GridAxis shares_of(std::string name, std::size_t tokens, std::span<const double> shares, std::size_t least = 0);

}  // namespace kvs::inline calibrate
