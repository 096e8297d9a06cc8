#pragma once

#include <memory>
#include <string>

#include "run/run.h"
#include "tasks/questions.h"

namespace kvs {

/// What --text is beside --task.
enum class TextUse {
  kHaystack,  // where things are hidden
  kScored,    // that, and what is scored
};
/// --task --lengths --depths --samples --answer-tokens.
void add_question_options(OptionTable& table);
/// Refuses a --task that is not known, and options that it does not take. @throws Error kUsage
void check_question_options(const Options& options, TextUse text = TextUse::kHaystack);
/// The tasks, a line for each.
std::string task_lines();

/// The questions of --task, and how they are asked.
struct TaskInput {
  /// Makes or reads them. Notes where questions are shorter than was asked for.
  /// @throws Error as the generators, read_questions() and question_extent()
  explicit TaskInput(const Run& run);

  std::string task;
  std::shared_ptr<const Tokenizer> tokenizer;
  Questions questions;
  TaskPlan plan;
  std::size_t longest = 0;  // tokens, with the room for the answer
};

}  // namespace kvs
