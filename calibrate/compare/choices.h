#pragma once

#include <span>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "io/json.h"

namespace kvs {

/// How much there is to a cache beside a storage type. Of two that documents do not tell apart the one with less is
/// chosen.
enum class Parts {
  kStorage,     // a storage type alone
  kMethod,      // a method at its paper's standard
  kComposed,    // such a method with a storage type
  kCalibrated,  // settings that were chosen on a text
  kFactors,     // tensors that were calibrated on one: elitekv, transform
};
Parts parts_of(const CompareCell& cell);

/// What was scored of what, as comparison_json() makes it.
struct ScoredCells {
  std::span<const CompareCell> cells;
  std::span<const CellResult> results;
  const Json& json;  // [cell]
};

/// For each budget {budget, cell, leader, documents, alike, kl, unscored, verdict}: of the cells that hold no more and
/// were scored on the most documents of these, `leader` has the least divergence, and `alike` are those that the
/// documents do not show to be behind it, with those that the time left behind on fewer documents. `cell` is the
/// plainest of these, or null, and `kl` its divergence relative to the one that the verdict names, which is why.
/// `unscored` is the number of the budget's cells that no time was left for. `verdict` says all this in words.
Json best_choices(const ScoredCells& scored, std::span<const double> budgets);
/// For each loss {loss, cell, documents, verdict}: the smallest cell of the front whose interval of perplexity ends at
/// or below the loss, or null.
Json smallest_choices(const ScoredCells& scored, std::span<const double> losses);

}  // namespace kvs
