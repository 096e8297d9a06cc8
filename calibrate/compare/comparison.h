#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/compare/racing.h"
#include "calibrate/compare/records.h"
#include "eval/evaluation.h"

namespace kvs {

/// Contiguous parts of a document's scored tokens that losses are kept of.
inline constexpr std::size_t kComparedParts = 8;

/// How much is spent.
struct ComparisonPlan {
  bool all = false;                    // every cell on every document: nothing stops
  std::optional<double> seconds = {};  // that the scoring may take
  std::size_t prefix = 0;              // tokens of each document that are not scored
};

/// What a cell showed on the first documents, in their order.
struct CellResult {
  Evaluation sum = {};
  CellScores scores = {};
  bool stopped = false;    // beaten before all documents were scored
  std::string error = {};  // why there are no scores: its cache fails, or a loss is no finite number
};

/// Scores caches on documents beside the full cache, which passes over each document once for all of them.
///
/// Documents come in rounds: to 1, 2, 4, … in all. After a round the cells that are beaten() stop. Where `seconds` are
/// given the first of several documents takes at most half of them, in the order of the cells, and a later round is
/// what of it is affordable(). What a round is of stands in the records, so that a run that is resumed scores the same
/// cells on the same documents, and its results are the same bits. A cell that fails has no scores. The records' ranks
/// share a round's passes; of `seconds` each rank spends its part.
/// @param make     a fresh cache of each cell; prefixes are at most the plan's
/// @param progress  called with the seconds spent and those still expected
/// @return on rank 0: one result for each cell; no scores where the time was over before
std::vector<CellResult> score_cells(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                    std::span<const std::function<Cache()>> make, const ComparisonPlan& plan,
                                    RunRecords& records, const std::function<void(double, double)>& progress);

}  // namespace kvs
