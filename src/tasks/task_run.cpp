// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_run.h"

#include <algorithm>

#include "io/record.h"
#include "tasks/haystack.h"
#include "texts/text_source.h"

namespace kvs::inline tasks {
namespace {

std::string readable(const std::string& bytes) {
  std::size_t replaced = 0;
  return replace_invalid_utf8(bytes, replaced);
}

std::optional<std::size_t> asked_length(const TaskSample& sample) {
  return sample.length == 0 ? std::nullopt : std::optional(sample.length);
}

Answer choose(AnswerModel& model, const TaskSample& sample, const Prompt& prompt) {
  Answer answer;
  double best = 0;
  for (std::size_t n = 0; n < sample.choices.size(); ++n) {
    const AnswerLikelihood found = model.likelihood(prompt, prompt.answers[n]);
    answer.bytes_ratio = std::max(answer.bytes_ratio, found.bytes_ratio);
    if (sample.choices[n] == sample.answers.front()) {
      answer.log_likelihood = found.log_likelihood;
      answer.tokens = prompt.answers[n].answer_tokens();
    }
    if (n > 0 && found.log_likelihood <= best) continue;
    best = found.log_likelihood;
    answer.text = sample.choices[n];
  }
  const double right = answer.text == sample.answers.front() ? 1 : 0;
  answer.scores = {right, right, right, right};
  return answer;
}

}  // namespace

Answer ask(AnswerModel& model, const TaskSample& sample, const Prompt& prompt, const TaskPlan& plan) {
  if (!sample.choices.empty()) return choose(model, sample, prompt);
  const AnsweredPrompt& right = prompt.answers.front();
  const AnswerLikelihood likelihood = model.likelihood(prompt, right);
  std::vector<std::int32_t> said;
  std::int32_t first = -1;
  std::string text;
  const bool any = plan.rule == AnswerRule::kAny;
  (void)model.generate(prompt, plan.answer_tokens, [&](std::int32_t id) {
    if (first < 0) first = id;
    // A model may have more ids than its tokenizer; these have no text.
    if (static_cast<std::size_t>(id) < plan.tokenizer.vocabulary_size()) said.push_back(id);
    text = readable(plan.tokenizer.decode(said));
    const std::string_view content = stripped(text);
    if (any) return content.empty() || text.find('\n', text.find(content)) == std::string::npos;
    return !std::ranges::all_of(sample.answers, [&](const std::string& answer) { return holds_answer(text, answer); });
  });
  return {.scores = score_text(text, sample.answers, plan.rule),
          .log_likelihood = likelihood.log_likelihood,
          .tokens = right.answer_tokens(),
          .first_token = first,
          .first_right = first == right.ids[right.first],
          .bytes_ratio = likelihood.bytes_ratio,
          .text = text};
}

std::vector<TaskResult> run_task(std::span<const TaskSample> samples, const TaskPlan& plan, AnswerModel& model,
                                 AnswerModel* full, const std::function<void(std::size_t)>& done, Journal* journal) {
  std::vector<TaskResult> results;
  for (const TaskSample& sample : samples) {
    const bool is_done = journal != nullptr && results.size() < journal->records().size();
    if (is_done) {
      results.push_back(task_result_from(journal->record(results.size()), sample, full != nullptr));
    } else {
      const Prompt prompt = encode_prompt(plan.tokenizer, sample, plan.rule, plan.bos);
      TaskResult result{.length = asked_length(sample), .depth = sample.depth, .prompt_tokens = prompt.ids.size()};
      result.answer = ask(model, sample, prompt, plan);
      if (full != nullptr) result.full = ask(*full, sample, prompt, plan);
      if (journal != nullptr) journal->append(to_json(result));
      results.push_back(std::move(result));
    }
    if (done) done(results.size());
  }
  return results;
}

TaskResult task_result_from(const JsonCursor& record, const TaskSample& sample, bool compared) {
  auto result = from_json<TaskResult>(record);
  (void)record_size(record.at("prompt_tokens"), 1);
  if (sample.length > 0) require_record(record.at("length"), sample.length);
  if (sample.depth) require_record(record.at("depth"), *sample.depth);
  if (compared) (void)record.at("full");
  if (!compared) result.full.reset();
  return result;
}

}  // namespace kvs::inline tasks
