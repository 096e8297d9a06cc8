// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "calibrate/compare/grid.h"
#include "calibrate/compare/records.h"
#include "results/comparison.h"
#include "run/task_input.h"

namespace kvs::inline compare {

/// A configuration of the Pareto front.
struct FrontConfiguration {
  std::size_t index = 0;  // in the comparison
  const Configuration* of = nullptr;
  double budget = 0;   // budget that the configuration belongs to
  double seconds = 0;  // time per document
};

/// Asks the questions with the full cache and the caches of the front. Returns {task, accuracy, log_likelihood (nats
/// per token), questions} for the full cache and for each configuration, which also has the `difference` of
/// the likelihoods and its interval. Methods that need a whole prefix take a question's context as the prefix. Each
/// question is asked with all caches, and the records keep it with the answers. A cache that gives a value that is not
/// finite for a question has no answers, which a note says. If this happens to the full cache, no cache has answers.
/// @param tokens   tokens of a document of the comparison
/// @param seconds  time limit of all questions. The time of the first question sets how many are asked. None is asked
///                 and everything is null if not even the first one fits by the configurations' own times.
struct FrontAnswers {
  std::optional<Retrieval> full;
  std::vector<std::optional<Retrieval>> configurations;
};
FrontAnswers ask_pareto_front(const Run& run, const TaskInput& questions, std::size_t tokens,
                              std::span<const FrontConfiguration> front, RunRecords& records,
                              std::optional<double> seconds);

/// Measures the tokens per second that the front's caches and the full cache decode at the end of `document`, in turns.
/// Returns the content of FILE_speed.json: medians of three runs, or of as many as fit into `seconds`. Returns nothing
/// if no run fits, or if a cache gives a value that is not finite.
std::optional<ComparisonSpeeds> time_pareto_front(const Run& run, std::span<const std::int32_t> document,
                                                  std::size_t decode, std::span<const FrontConfiguration> front,
                                                  std::optional<double> seconds);

}  // namespace kvs::inline compare
