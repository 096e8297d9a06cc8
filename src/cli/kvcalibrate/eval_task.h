#pragma once

#include <array>
#include <string_view>

#include "run/run.h"

namespace kvs::inline cli {

/// Adds the options of add_question_options() and --prefill.
void add_task_options(OptionTable& table);
/// The options that need --task.
inline constexpr std::array<std::string_view, 6> kTaskOptions = {"lengths", "depths",        "samples",
                                                                 "prefill", "answer-tokens", "seed"};
/// Checks the options used with --task, as far as possible without a file. @throws Error kUsage
void check_task_options(const Options& options);
/// Runs `eval --task`: answers questions with a cache.
/// @throws Error as run_eval(); kUnsupported for a question that is longer than the model's context.
void run_eval_task(Run& run);

}  // namespace kvs::inline cli
