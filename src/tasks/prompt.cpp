// SPDX-License-Identifier: Apache-2.0
#include "tasks/prompt.h"

#include <algorithm>

#include "tasks/haystack.h"

namespace kvs::inline tasks {
namespace {

std::size_t common_beginning(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::size_t Prompt::longest() const noexcept {
  std::size_t longest = ids.size();
  for (const AnsweredPrompt& answer : answers) longest = std::max(longest, answer.ids.size());
  return longest;
}

Prompt encode_prompt(const Tokenizer& tokenizer, const TaskSample& sample, AnswerRule rule, std::int32_t bos) {
  const auto encoded = [&](const std::string& text) {
    std::vector<std::int32_t> ids = tokenizer.encode(text);
    begin_with(bos, ids);
    return ids;
  };
  const std::string text = sample.prompt(), blank = text.empty() || is_blank(text.back()) ? "" : " ";
  Prompt prompt;
  prompt.ids = encoded(text);
  prompt.context = common_beginning(prompt.ids, encoded(sample.context));
  std::vector<std::string> answers = sample.choices;
  if (answers.empty())
    answers.push_back(rule == AnswerRule::kAny ? sample.answers.front() : joined(sample.answers, ", "));
  for (const std::string& answer : answers) {
    AnsweredPrompt& answered = prompt.answers.emplace_back();
    answered.ids = encoded(text + blank + answer);
    // At least one id belongs to the answer, and at least one precedes it.
    answered.first = std::clamp<std::size_t>(common_beginning(answered.ids, prompt.ids), 1, answered.ids.size() - 1);
  }
  return prompt;
}

}  // namespace kvs::inline tasks
