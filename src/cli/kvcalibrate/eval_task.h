// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/prompt_caches.h"
#include "run/run.h"

namespace kvs::inline cli {

/// Adds the options of add_question_options() and --prefill.
void add_task_options(OptionTable& table);
/// Refuses parameters of a prefix in --set, and a --prefill that the named method does not have.
/// @param beside  the option that prompts come from
void check_prefill(const Options& options, const std::string& beside);
/// Returns the cache that the options name, and how prompts are put into it.
/// @throws Error as choose_cache()
TaskCache prompted_cache(const Options& options, const ModelSource& source);
/// Runs `eval --task`: answers questions with a cache.
/// @throws Error as run_eval(); kUnsupported for a question that is longer than the model's context.
void run_eval_task(Run& run);

}  // namespace kvs::inline cli
