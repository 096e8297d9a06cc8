// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "tasks/task_run.h"

namespace kvs::inline tasks {

inline constexpr std::size_t kLongestQuestion = std::size_t{1} << 24;

/// The questions of a task, and how they are asked.
struct Questions {
  std::vector<TaskSample> samples = {};
  AnswerRule rule = AnswerRule::kAll;
  std::size_t answer_tokens = 0;
  std::vector<std::string> sha256 = {};  // of the files that were read
};

/// Questions of every length. @param request  its length is not read
/// @throws Error kUnsupported for a length beyond the model's context; as the task's generator
Questions make_questions(const TaskDefinition& task, TaskRequest request, std::span<const std::size_t> lengths,
                         const ModelConfig& model);
/// The questions of a *.jsonl file. @throws Error as read_questions()
Questions questions_of_file(const std::string& path);

/// Tokens of the longest question with the room for its answer, and notes on questions that are shorter than was asked.
struct QuestionExtent {
  std::size_t longest = 0;
  std::vector<std::string> notes = {};
};
/// @param name  of the task, for messages
/// @throws Error kUnsupported beyond the context, kUsage for less than a quarter of the length that was asked for
QuestionExtent question_extent(std::span<const TaskSample> samples, const TaskPlan& plan, const ModelConfig& model,
                               const std::string& name);

}  // namespace kvs::inline tasks
