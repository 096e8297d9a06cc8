#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/spectrum.h"
#include "caches/parameters.h"

namespace kvs {

/// What a budget allows of a document: the room that settings share out.
struct BudgetRoom {
  std::size_t tokens = 0;       // of a document
  std::size_t rows = 0;         // tokens whose keys and values the budget holds
  std::size_t later = 0;        // tokens after a prefix that is compressed at its end
  Json given = Json::object();  // settings that are fixed: they take the place of a grid's

  /// Rows for the tokens of the prefix.
  std::size_t of_prefix() const noexcept { return rows - std::min(rows, later); }
  /// The number that is given for all layers, or else `own`.
  std::size_t count(const std::string& parameter, std::size_t own) const;
  /// An eighth of the rows, `most` at most, unless sinks are given.
  std::size_t sinks(std::size_t most) const;
};

/// What layers may have of one parameter at the same bytes, beside what settings have.
struct LayerProposal {
  std::string_view parameter = {};
  /// [n] that of spectrum.layers[n], by the DCT of its states.
  std::vector<Json> (*by_spectra)(const Spectrum& spectrum, const Json& settings) = nullptr;
};

/// What a method brings to a calibration to a byte budget: settings (as Parameters takes them) without what sets the
/// size (Method::settings_for_share), which the budget gives.
struct BudgetGrid {
  /// The paper's own setting, then what stands in for it where that reaches no small enough size.
  std::vector<Json> (*standards)() = nullptr;
  /// What is tried: few settings, along the axes that were found to matter (docs/budgets.md). Where the method has no
  /// size to choose, also what layers trade.
  std::vector<Json> (*settings)(const BudgetRoom& room) = nullptr;
  LayerProposal proposal = {};
  /// How much settings ask of what runs them: of settings of equal bytes that documents do not tell apart the least is
  /// chosen. nullptr: all ask the same.
  std::size_t (*demand)(const Json& settings) = nullptr;
  /// Where time is short, calibrations of low numbers come first: those that gain most for the time that they take.
  int priority = 0;
};

/// The method's, or one that has the method's standards alone.
BudgetGrid budget_grid(std::string_view method) noexcept;

/// A parameter and the values to try.
struct GridAxis {
  std::string name;
  std::vector<Json> values;
};
/// Every combination, the last axis running fastest.
std::vector<Json> combinations(const std::vector<GridAxis>& axes);
/// Shares of a number of tokens as an axis: whole numbers, `least` or more.
GridAxis shares_of(std::string name, std::size_t tokens, std::span<const double> shares, std::size_t least = 0);

}  // namespace kvs
