#pragma once

#include <array>
#include <string_view>

#include "run/run.h"

namespace kvs {

/// add_question_options() and --prefill.
void add_task_options(OptionTable& table);
/// The options that need --task.
inline constexpr std::array<std::string_view, 6> kTaskOptions = {"lengths", "depths",        "samples",
                                                                 "prefill", "answer-tokens", "seed"};
/// Refuses what is wrong beside --task, as far as no file is needed. @throws Error kUsage
void check_task_options(const Options& options);
/// `eval` of a task: questions with a cache at work. @throws Error as run_eval; kUnsupported for a question that is
/// longer than the model's context.
void run_eval_task(Run& run);

}  // namespace kvs
