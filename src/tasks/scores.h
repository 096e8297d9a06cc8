#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace kvs {

/// How right a text is, each 0 … 1.
struct Scores {
  double accuracy = 0;  // 1: all answers are in the text, or one of alternatives
  double recall = 0;    // share of the answers that are in it; accuracy where they are alternatives
  double partial = 0;   // longest piece of an answer that is in it: mean over the answers, or the best alternative's
  double f1 = 0;        // of its first line's words, the best answer's
};

/// Whether `answer` stands in `text`, both in Python's lower case: RULER's string_match. Forms of normalisation differ.
bool holds_answer(std::string_view text, std::string_view answer);
/// Length of the longest common substring over that of `answer`, in characters of Python's lower case. Source:
/// longctx_bench's partial_match, LagKV's needle score, where answers are digits. O(|answer| · |text|).
double longest_common_share(std::string_view answer, std::string_view text);
/// F1 of words in lower case without ASCII punctuation and articles. Source: SQuAD's evaluation, as LongBench.
double word_f1(std::string_view answer, std::string_view text);

Scores score_text(std::string_view text, std::span<const std::string> answers, AnswerRule rule);

}  // namespace kvs
