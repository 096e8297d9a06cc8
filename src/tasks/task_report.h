#pragma once

#include <span>
#include <string>

#include "io/json.h"
#include "results/retrieval_chart.h"
#include "tasks/task_run.h"

namespace kvs {

/// What answers have in common (docs/tasks.md): means over questions; log_likelihood is per token of the right answers;
/// prompt_tokens are the least and the most.
/// Beside the full cache `full` has the same of it, `first_token_as_full` the share of answers that begin alike, and
/// `difference` how much more probable the answers are than there, with its 95 % interval over questions.
Json task_json(std::span<const TaskResult> results);
/// The same in words.
std::string task_summary(const Json& report);
/// Whether the full cache, or where there is no other the one at work, misses most questions: the likelihood is the
/// measure then.
bool is_failed(const Json& report);

/// Means by length and depth. Empty lists if results have no depth.
RetrievalMap retrieval_map(std::span<const TaskResult> results);

}  // namespace kvs
