#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace kvs {

/// A question about a context. Both are one text, after which the answer is to follow.
struct TaskSample {
  std::string context, question;
  std::vector<std::string> answers;
  std::vector<std::string> choices = {};  // the answer is the most probable of these, answers[0]; empty: it is free
  std::size_t length = 0;                 // tokens that were asked for, the answer's included; 0: as it comes
  std::optional<double> depth = {};       // of what is to be found, 0 … 1

  std::string prompt() const { return context + question; }
};

/// What of several answers has to be found: all of them, or one.
enum class AnswerRule { kAll, kAny };

/// What a generator works from.
struct TaskRequest {
  const Tokenizer& tokenizer;
  std::int32_t bos = -1;      // an id that every prompt begins with, or none
  std::size_t length = 1024;  // tokens of BOS, prompt and answer together
  std::size_t samples = 1;    // for each depth where a task has depths
  std::uint64_t seed = 0;
  std::string_view haystack = {};  // a text to hide things in; empty: there is none
  std::span<const double> depths = {};
};

/// A task whose samples are made, not read.
struct TaskDefinition {
  std::string_view name;
  std::string_view summary;
  std::size_t answer_tokens;  // room for the answer
  bool needs_haystack;
  bool has_depths;
  /// @throws Error kUsage naming the length where it has no room for the task
  std::vector<TaskSample> (*make)(const TaskRequest& request);
};

// Each generator's file defines its own; tasks.cpp lists them.
extern const TaskDefinition kPasskeyTask, kNeedleTask, kVariableTrackingTask, kCommonWordsTask, kFrequentWordsTask;
extern const std::span<const TaskDefinition> kRulerNeedleTasks;

/// All of them, in the order in which they are listed.
std::span<const TaskDefinition* const> task_definitions();
/// nullptr if there is none of this name.
const TaskDefinition* find_task(std::string_view name);

}  // namespace kvs
