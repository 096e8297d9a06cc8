#pragma once

#include "cli/common/session.h"

namespace kvs {

/// --task --lengths --depths --samples --prefill --answer-tokens.
void add_task_options(OptionTable& table);
/// The tasks, a line for each.
std::string task_lines();
/// @throws Error kUsage for the first of them that stands on a command line without --task.
void refuse_task_options(const Options& options);
/// `eval` of a task: questions with a cache at work. @throws Error as run_eval; kUnsupported for a question that is
/// longer than the model's context.
void run_eval_task(const Options& options, const RunOptions& run);

}  // namespace kvs
