#pragma once

#include <span>
#include <vector>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "results/comparison.h"

namespace kvs {

/// The error of a cell that no time was left to score.
inline constexpr const char* kNoTimeToScore = "no time was left";

/// How complex a cache is, in ascending order. Of two caches that the documents do not tell apart, the simpler one is
/// chosen.
enum class Parts {
  kStorage,     // a storage type alone
  kMethod,      // a method with its paper's default settings
  kComposed,    // such a method with a storage type
  kCalibrated,  // settings that were chosen on a text
  kFactors,     // tensors that were calibrated on a text: elitekv, transform
};
Parts parts_of(const CompareCell& cell);

/// The cells of a comparison with their scores.
struct ScoredCells {
  std::span<const CompareCell> cells;
  std::span<const CellResult> results;
  std::span<const ComparedCell> compared;
};

/// Returns a choice for each budget. The candidates are the cells within the budget that were scored on the most
/// documents.
///  - `leader` is the candidate of least divergence.
///  - `alike` are the cells that the documents do not show to be behind the leader, including cells that have fewer
///    documents because the time ended.
///  - `cell` is the simplest of these, or null.
///  - `kl` is the divergence of `cell` relative to the cell that the verdict names, as the reason for the choice.
///  - `unscored` is the number of the budget's cells that no time was left to score.
///  - `verdict` explains the choice in words.
std::vector<BestChoice> best_choices(const ScoredCells& scored, std::span<const double> budgets);
/// Returns a choice for each loss: the smallest cell of the Pareto front whose perplexity interval ends at or below the
/// loss, or null.
std::vector<SmallestChoice> smallest_choices(const ScoredCells& scored, std::span<const double> losses);

}  // namespace kvs
