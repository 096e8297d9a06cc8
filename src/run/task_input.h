// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "run/run.h"
#include "tasks/questions.h"

namespace kvs::inline run {

/// The use of --text with --task.
enum class TextUse {
  kHaystack,  // the text in which items are hidden
  kScored,    // the text in which items are hidden, and which is scored
};
/// Adds --task, --lengths, --depths, --samples, --answer-tokens and --seed.
void add_question_options(OptionTable& table, TextUse text);
/// Returns one line for each task.
std::string task_lines();

/// The questions of --task, and the plan for asking them.
struct TaskInput {
  /// Generates or reads the questions. Prints a note if questions are shorter than requested.
  /// @throws Error from the generators, read_questions() and question_extent()
  explicit TaskInput(const Run& run);

  std::string task;
  std::shared_ptr<const Tokenizer> tokenizer;
  Questions questions;
  TaskPlan plan;
  std::size_t longest = 0;  // tokens, including the space for the answer
};

}  // namespace kvs::inline run
