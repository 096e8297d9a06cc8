#pragma once

#include "run/run.h"

namespace kvs::inline cli {

/// Adds the options of add_question_options() and --prefill.
void add_task_options(OptionTable& table);
/// Runs `eval --task`: answers questions with a cache.
/// @throws Error as run_eval(); kUnsupported for a question that is longer than the model's context.
void run_eval_task(Run& run);

}  // namespace kvs::inline cli
