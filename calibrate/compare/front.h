#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/compare/grid.h"
#include "calibrate/compare/records.h"
#include "results/comparison.h"
#include "run/run.h"
#include "tasks/task_run.h"

namespace kvs {

/// A cell of the front.
struct FrontCell {
  std::size_t cell = 0;  // in the comparison
  const CompareCell* of = nullptr;
  double budget = 0;   // that it falls under
  double seconds = 0;  // that a document took
};

/// Questions as they are asked.
struct FrontQuestions {
  std::string task;  // the name
  std::span<const TaskSample> samples;
  TaskPlan plan;
  std::size_t longest = 0;  // tokens, with the room for the answer
};

/// Asks the questions with the full cache and those of the front: {task, accuracy, log_likelihood (nats a
/// token), questions} of the full cache and of each cell, which also have the `difference` of the likelihoods and its
/// interval. Methods that need a whole prefix take a question's context as such. Each question goes to all of them and
/// is kept in the records with their answers. A cache that computes no number for a question has no answers, which a
/// note says; where that is the full cache nothing has.
/// @param tokens  of the comparison's documents
/// @param seconds  of all questions: so many are asked as fit by the first one's time; none, and all is null, where by
///                 the cells' own times not even that one does
struct FrontAnswers {
  std::optional<Retrieval> full;
  std::vector<std::optional<Retrieval>> cells;
};
FrontAnswers ask_front(const Run& run, const FrontQuestions& questions, std::size_t tokens,
                       std::span<const FrontCell> front, RunRecords& records, std::optional<double> seconds);

/// Tokens per second that the front's caches and the full cache decode, taking turns, at the end of `document`: the
/// content of FILE_speed.json. Medians of three, or of so many as fit into `seconds`; nothing where none does, or where
/// a cache computes no number.
std::optional<ComparisonSpeeds> time_front(const Run& run, std::span<const std::int32_t> document, std::size_t decode,
                                           std::span<const FrontCell> front, std::optional<double> seconds);

}  // namespace kvs
