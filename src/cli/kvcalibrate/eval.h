// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/run.h"

namespace kvs::inline cli {

// `eval` on questions and on continuations of the model, each with its options. Both throw Error as run_eval().

/// Adds the options of add_question_options() and --prefill.
void add_task_options(OptionTable& table);
/// Answers questions with a cache. @throws Error kUnsupported for a question that is longer than the model's context
void run_eval_task(Run& run);

/// Adds --trace, --prompts, --chat, --temperature, --trace-out and --trace-from.
void add_trace_options(OptionTable& table);
/// Returns true if `eval` runs on continuations of the model.
bool is_eval_trace(const Options& options);
/// Scores a cache on texts that the full cache generates, and compares the cache's own continuations.
/// @throws Error of read_prompts() and ChatFormat
void run_eval_trace(Run& run);

}  // namespace kvs::inline cli
