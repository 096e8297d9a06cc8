#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/kvcalibrate/cache_choice.h"
#include "io/json.h"

namespace kvs {

/// A cell of the front.
struct FrontCell {
  std::size_t cell = 0;  // in the comparison
  std::string label;
  double budget = 0;
  CacheChoice choice;
};

/// Asks the questions of --task with the full cache and those of the front: {task, accuracy, log_likelihood (nats a
/// token), questions} of the full cache and of each cell, which also have the `difference` of the likelihoods and its
/// interval. Methods that need a whole prefix take a question's context as such.
struct FrontAnswers {
  Json full;
  std::vector<Json> cells;
};
FrontAnswers ask_front(const Options& options, const RunOptions& run, const ModelSession& session,
                       std::span<const FrontCell> front);
/// @throws Error as the task's generator, kUnsupported for questions beyond the model's context: before any work.
void check_questions(const Options& options, const RunOptions& run, const ModelSource& source);

/// Tokens per second that the front's caches and the full cache decode, taking turns, at the end of `document`: the
/// content of FILE_speed.json. Medians of three.
Json time_front(const ModelSession& session, std::span<const std::int32_t> document, std::size_t decode,
                std::span<const FrontCell> front);

}  // namespace kvs
