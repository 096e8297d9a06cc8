#include "tasks/task_run.h"

#include <algorithm>
#include <limits>

#include "io/record.h"
#include "tasks/haystack.h"
#include "texts/text_source.h"

namespace kvs {
namespace {

std::string readable(const std::string& bytes) {
  std::size_t replaced = 0;
  return replace_invalid_utf8(bytes, replaced);
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

// An answer as a record of a journal and in a report.

Json to_json(const Answer& answer) {
  return {{"accuracy", answer.scores.accuracy},      {"recall", answer.scores.recall},
          {"partial", answer.scores.partial},        {"f1", answer.scores.f1},
          {"log_likelihood", answer.log_likelihood}, {"answer_tokens", answer.tokens},
          {"first_token", answer.first_token},       {"first_right", answer.first_right},
          {"bytes_ratio", answer.bytes_ratio},       {"text", answer.text}};
}

Answer answer_from(const JsonCursor& record) {
  const auto share = [&](const char* name) {
    const double found = record_real(record.at(name));
    if (found < 0 || found > 1) record.at(name).fail("a number from 0 to 1");
    return found;
  };
  return {.scores = {share("accuracy"), share("recall"), share("partial"), share("f1")},
          .log_likelihood = record_real(record.at("log_likelihood")),
          .tokens = record_size(record.at("answer_tokens"), 1),
          .first_token =
              static_cast<std::int32_t>(record.at("first_token").integer(-1, std::numeric_limits<std::int32_t>::max())),
          .first_right = record.at("first_right").boolean(),
          .bytes_ratio = record_real(record.at("bytes_ratio")),
          .text = record.at("text").string()};
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
    // A model may have more ids than its tokenizer, which stand for nothing.
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
      TaskResult result{
          .length = sample.length, .depth = sample.depth, .prompt_tokens = prompt.ids.size(), .answer = {}, .full = {}};
      result.answer = ask(model, sample, prompt, plan);
      if (full != nullptr) result.full = ask(*full, sample, prompt, plan);
      if (journal != nullptr) journal->append(to_json(result));
      results.push_back(std::move(result));
    }
    if (done) done(results.size());
  }
  return results;
}

Json to_json(const TaskResult& result) {
  Json json = Json::object();
  if (result.length > 0) json["length"] = result.length;
  if (result.depth) json["depth"] = *result.depth;
  json["prompt_tokens"] = result.prompt_tokens;
  json["answer"] = to_json(result.answer);
  if (result.full) json["full"] = to_json(*result.full);
  return json;
}

TaskResult task_result_from(const JsonCursor& record, const TaskSample& sample, bool compared) {
  TaskResult result{.length = sample.length,
                    .depth = sample.depth,
                    .prompt_tokens = record_size(record.at("prompt_tokens"), 1),
                    .answer = answer_from(record.at("answer")),
                    .full = {}};
  if (sample.length > 0) require_record(record.at("length"), sample.length);
  if (sample.depth) require_record(record.at("depth"), *sample.depth);
  if (compared) result.full = answer_from(record.at("full"));
  return result;
}

}  // namespace kvs
