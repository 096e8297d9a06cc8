#pragma once

#include <cstdint>
#include <vector>

#include "tasks/task.h"

namespace kvs {

/// A prompt and an answer as one text's ids: the answer's are those from `first` on.
struct AnsweredPrompt {
  std::vector<std::int32_t> ids;
  std::size_t first = 0;

  std::size_t answer_tokens() const noexcept { return ids.size() - first; }
};

/// A sample as a model reads it.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::size_t context = 0;              // so many of them are those of the context alone
  std::vector<AnsweredPrompt> answers;  // the sample's choices; without these its answers, one behind the other

  std::size_t longest() const noexcept;
};

/// Where a text's ids leave those of a longer one, the longer one's rest begins: tokenizers may join what lies on both
/// sides. A blank goes before an answer whose prompt does not end in one.
/// @param bos  an id to begin with, or -1
/// @param rule kAny: each of alternatives would do, so that the first stands for them
Prompt encode_prompt(const Tokenizer& tokenizer, const TaskSample& sample, AnswerRule rule, std::int32_t bos = -1);

}  // namespace kvs
