// SPDX-License-Identifier: Apache-2.0
#include "tasks/questions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "tasks/question_file.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kFileAnswerTokens = 32;

void check_length(std::size_t tokens, const ModelConfig& model, const std::string& what) {
  if (model.exceeds_context(tokens))
    throw Error(ErrorCode::kUnsupported, what,
                "found " + std::to_string(tokens) + " tokens, expected at most the model's context of " +
                    std::to_string(model.context));
}

/// The tokens that questions have, by the tokens that were asked for.
class QuestionLengths {
 public:
  void add(std::size_t asked, std::size_t tokens) {
    auto& [least, most] = found_.try_emplace(asked, tokens, tokens).first->second;
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }

  /// A note for each length that they fall short of by a tenth. @throws Error kUsage for less than a quarter of it
  std::vector<std::string> notes(const std::string& task) const {
    std::vector<std::string> notes;
    for (const auto& [asked, range] : found_) {
      const auto& [least, most] = range;
      const std::string found = std::to_string(least) + (most > least ? " to " + std::to_string(most) : "");
      const std::string tokens = std::to_string(asked) + " tokens";
      if (least < asked / 4)
        throw Error(ErrorCode::kUsage, "--lengths",
                    task + ": found questions of " + found + " tokens, expected " + tokens);
      if (least < asked - asked / 10)
        notes.push_back("questions of " + task + " have " + found + " tokens with their answers where " + tokens +
                        " were asked for: the text grows in steps");
    }
    return notes;
  }

 private:
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> found_;  // the least and the most, by length
};

}  // namespace

Questions make_questions(const TaskDefinition& task, TaskRequest request, std::span<const std::size_t> lengths,
                         const ModelConfig& model) {
  Questions questions{.answer_tokens = task.answer_tokens};
  for (const std::size_t length : lengths) {
    check_length(length, model, "--lengths");
    request.length = length;
    std::ranges::move(task.make(request), std::back_inserter(questions.samples));
  }
  return questions;
}

Questions questions_of_file(const std::string& path) {
  QuestionFile file = read_questions(path);
  return {.samples = std::move(file.samples),
          .rule = AnswerRule::kAny,
          .answer_tokens = kFileAnswerTokens,
          .sha256 = {file.sha256}};
}

QuestionExtent question_extent(std::span<const TaskSample> samples, const TaskPlan& plan, const ModelConfig& model,
                               const std::string& name) {
  QuestionExtent extent;
  QuestionLengths lengths;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const TaskSample& sample = samples[n];
    const Prompt prompt = encode_prompt(plan.tokenizer, sample, plan.rule, plan.bos);
    const std::size_t room = sample.choices.empty() ? plan.answer_tokens : 0;
    const std::size_t tokens = std::max(prompt.longest(), prompt.ids.size() + room);
    check_length(tokens, model, name + ": question " + std::to_string(n + 1));
    extent.longest = std::max(extent.longest, tokens);
    if (sample.length > 0) lengths.add(sample.length, tokens);
  }
  extent.notes = lengths.notes(name);
  return extent;
}

}  // namespace kvs::inline tasks
