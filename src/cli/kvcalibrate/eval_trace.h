// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/run.h"

namespace kvs::inline cli {

/// Adds --trace, --prompts, --chat, --temperature, --trace-out and --trace-from.
void add_trace_options(OptionTable& table);
/// Returns true if `eval` runs on continuations of the model.
bool is_eval_trace(const Options& options);
/// Runs `eval --trace` or `eval --trace-from`: scores a cache on texts that the full cache generates, and compares the
/// cache's own continuations.
/// @throws Error as run_eval(); of read_prompts(), ChatFormat and prompts_of_file()
void run_eval_trace(Run& run);

}  // namespace kvs::inline cli
