// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/task.h"

namespace kvs::inline tasks {

/// A prompt and an answer as the ids of one text. The answer's ids begin at `first`.
struct AnsweredPrompt {
  std::vector<std::int32_t> ids;
  std::size_t first = 0;

  std::size_t answer_tokens() const noexcept { return ids.size() - first; }
};

/// The ids of a sample.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::size_t context = 0;              // number of ids that belong to the context only
  std::vector<AnsweredPrompt> answers;  // the sample's choices; without choices, all its answers, joined

  std::size_t longest() const noexcept;
};

/// Encodes a sample. A prompt ends, and the answer begins, at the first id that differs between the prompt's text and
/// the text with the answer, because tokenizers may join the characters on both sides. A space is put before an answer
/// if the prompt does not end in one.
/// @param bos  first id, or -1
/// @param rule kAny: the answers are alternatives; the first one is used
Prompt encode_prompt(const Tokenizer& tokenizer, const TaskSample& sample, AnswerRule rule, std::int32_t bos = -1);

}  // namespace kvs::inline tasks
