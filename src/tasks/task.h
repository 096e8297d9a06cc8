// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace kvs::inline tasks {

/// A question about a context. Context and question are one text; the answer should follow it.
struct TaskSample {
  std::string context, question;
  std::vector<std::string> answers;
  std::vector<std::string> choices = {};  // the most probable is the answer, answers[0] is right; empty: free
  std::size_t length = 0;                 // requested tokens, answer included; 0: not set
  std::optional<double> depth = {};       // of the item to find, 0 … 1

  std::string prompt() const { return context + question; }
};

/// How many of several answers must be found: all, or one.
enum class AnswerRule { kAll, kAny };

/// Input of a generator.
struct TaskRequest {
  const Tokenizer& tokenizer;
  std::int32_t bos = -1;      // id that every prompt begins with; -1: none
  std::size_t length = 1024;  // tokens of BOS, prompt and answer together
  std::size_t samples = 1;    // for each depth if the task has depths
  std::uint64_t seed = 0;
  std::string_view haystack = {};  // text to hide things in; empty: none
  std::span<const double> depths = {};
};

/// A task whose samples are generated, not read.
struct TaskDefinition {
  std::string_view name;
  std::string_view summary;
  std::size_t answer_tokens;  // room for the answer
  bool needs_haystack;
  bool has_depths;
  /// @throws Error kUsage naming the length if it has no room for the task
  std::vector<TaskSample> (*make)(const TaskRequest& request);
};

// Each generator's file defines its own; tasks.cpp lists them.
extern const TaskDefinition kPasskeyTask, kNeedleTask, kVariableTrackingTask, kCommonWordsTask, kFrequentWordsTask;
extern const std::span<const TaskDefinition> kRulerNeedleTasks;

/// All tasks, in the order in which they are listed.
std::span<const TaskDefinition* const> task_definitions();
/// Returns nullptr if there is no task of this name.
const TaskDefinition* find_task(std::string_view name);

}  // namespace kvs::inline tasks
