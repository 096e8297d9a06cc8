#pragma once

#include <span>
#include <vector>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "results/comparison.h"

namespace kvs {

/// The error of cells that no time was left to score.
inline constexpr const char* kNoTimeToScore = "no time was left";

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

/// What was scored of what.
struct ScoredCells {
  std::span<const CompareCell> cells;
  std::span<const CellResult> results;
  std::span<const ComparedCell> compared;
};

/// A choice for each budget: of the cells that hold no more and were scored on the most documents of these, `leader`
/// has the least divergence, and `alike` are those that the documents do not show to be behind it, with those that the
/// time left behind on fewer documents. `cell` is the plainest of these, or null, and `kl` its divergence relative to
/// the one that the verdict names, which is why. `unscored` is the number of the budget's cells that no time was left
/// for. `verdict` says all this in words.
std::vector<BestChoice> best_choices(const ScoredCells& scored, std::span<const double> budgets);
/// A choice for each loss: the smallest cell of the front whose interval of perplexity ends at or below the loss, or
/// null.
std::vector<SmallestChoice> smallest_choices(const ScoredCells& scored, std::span<const double> losses);

}  // namespace kvs
