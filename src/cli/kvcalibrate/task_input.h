#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/text_input.h"
#include "tasks/task_run.h"

namespace kvs {

inline constexpr std::size_t kLongestQuestion = std::size_t{1} << 24;
inline constexpr std::int64_t kMaxSamples = 100000;  // questions, and tokens of an answer

/// The questions, and how they are asked.
struct TaskInput {
  std::vector<TaskSample> samples;
  AnswerRule rule = AnswerRule::kAll;
  std::size_t answer_tokens = 0;
  std::vector<std::string> sha256 = {};  // of what was read
};

/// Makes or reads the questions of --task.
/// @throws Error as the generators and read_questions(); kUsage for an option that the task does not take.
TaskInput task_input(const Options& options, const RunOptions& run, const ModelConfig& model,
                     const Tokenizer& tokenizer);
/// The tokens of the longest question with the room for its answer. Says where questions are shorter than asked for.
/// @throws Error kUnsupported beyond the context, kUsage for less than a quarter of --lengths.
std::size_t longest_question(const TaskInput& input, const TaskPlan& plan, const ModelConfig& model,
                             const RunOptions& run, const std::string& name);
/// What --text is beside --task.
enum class TextUse {
  kHaystack,  // where things are hidden
  kScored,    // that, and what is scored
};
/// Refuses a --task that is not known, and options that it does not take. @throws Error kUsage
void check_question_options(const Options& options, TextUse text = TextUse::kHaystack);

}  // namespace kvs
