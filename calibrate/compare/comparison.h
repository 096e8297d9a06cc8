// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline compare {

/// Number of contiguous parts of a document's scored tokens. A loss is kept for each part.
inline constexpr std::size_t kComparedParts = 8;

/// The limits of the scoring.
struct ComparisonPlan {
  bool all = false;                    // score every configuration on every document: no configuration stops early
  std::optional<double> seconds = {};  // time limit of the scoring
  std::size_t prefix = 0;              // tokens of each document that are not scored
};

/// Scores of a configuration on the first documents, in their order.
struct ConfigurationResult {
  Evaluation sum = {};
  RaceScores scores = {};
  bool stopped = false;    // dominated before all documents were scored
  std::string error = {};  // why there are no scores: its cache fails, or a loss is not finite
};

/// Scores caches on documents against the full cache. The full cache passes over each document once in all.
///
/// Documents are scored in rounds that end after 1, 2, 4, … documents in total. After each round, configurations that
/// is_dominated() stop. With a limit `seconds`, the first of several documents takes at most half of the time, in the
/// order of the configurations, and fit_to_time() shrinks each later round. The records hold the configurations and
/// documents of each round, so that a resumed run scores the same configurations on the same documents with
/// bit-identical results. A configuration that fails has no scores. The ranks of the records share the passes of a
/// round and the `seconds`.
/// @param make      makes a fresh cache for each configuration; prefixes are at most the plan's
/// @param progress  called with the seconds spent and the seconds still expected
/// @return on rank 0: one result for each configuration, without scores if the time ended before
std::vector<ConfigurationResult> score_configurations(Decoder& decoder,
                                                      std::span<const std::vector<std::int32_t>> documents,
                                                      std::span<const std::function<Cache()>> make,
                                                      const ComparisonPlan& plan, RunRecords& records,
                                                      const std::function<void(double, double)>& progress);

}  // namespace kvs::inline compare
