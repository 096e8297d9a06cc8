// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/journal.h"
#include "results/task_answers.h"
#include "tasks/answer_model.h"
#include "tasks/scores.h"
#include "tasks/task.h"

namespace kvs::inline tasks {

/// How questions are asked.
struct TaskPlan {
  const Tokenizer& tokenizer;
  AnswerRule rule = AnswerRule::kAll;
  std::size_t answer_tokens = 32;  // maximum number of generated tokens
  std::int32_t bos = -1;           // first id of prompts; -1: none
};

/// Asks a question: the likelihood of its answer, token by token as it should be, then what the model says itself. Of
/// choices the most probable one is its answer, and nothing is generated.
/// Where every answer has been said generation ends: scores cannot rise. With alternatives a line's end after a word
/// ends it, too.
Answer ask(AnswerModel& model, const TaskSample& sample, const Prompt& prompt, const TaskPlan& plan);

/// Asks all questions.
/// @param full     the model with the full cache, or nullptr
/// @param done     called after each question with the number of questions done
/// @param journal  receives finished questions; questions that it already holds are not asked again
std::vector<TaskResult> run_task(std::span<const TaskSample> samples, const TaskPlan& plan, AnswerModel& model,
                                 AnswerModel* full, const std::function<void(std::size_t)>& done = {},
                                 Journal* journal = nullptr);

/// @param compared  whether the full cache was asked, too. @throws Error kInput where it is not the sample's
TaskResult task_result_from(const JsonCursor& record, const TaskSample& sample, bool compared);

}  // namespace kvs::inline tasks
