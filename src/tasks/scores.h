// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "results/task_answers.h"
#include "tasks/task.h"

namespace kvs::inline tasks {

/// Whether `answer` stands in `text`, both in Python's lower case: RULER's string_match. Forms of normalisation differ.
bool holds_answer(std::string_view text, std::string_view answer);
/// Returns the length of the longest common substring divided by that of `answer`, in characters of Python's lower
/// case. Source: longctx_bench's partial_match, LagKV's needle score, where answers are digits. O(|answer| · |text|).
double longest_common_share(std::string_view answer, std::string_view text);
/// Returns F1 of words in lower case without ASCII punctuation and articles. Source: SQuAD, as in LongBench.
double word_f1(std::string_view answer, std::string_view text);

Scores score_text(std::string_view text, std::span<const std::string> answers, AnswerRule rule);

}  // namespace kvs::inline tasks
