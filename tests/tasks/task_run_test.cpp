// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tasks/task_summary.h"
#include "tests/eval/tiny_model.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"
#include "tests/tasks/four_bytes.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

/// Gives the right answers to the questions that it knows, and to all others a text that is in no answer.
class ScriptedModel final : public AnswerModel {
 public:
  ScriptedModel(const Tokenizer& tokenizer, std::vector<TaskSample> known)
      : tokenizer_(&tokenizer), known_(std::move(known)) {}

  AnswerLikelihood likelihood(const Prompt&, const AnsweredPrompt& answer) override {
    const bool right = text_of(answer) != nullptr;
    return {right ? 0 : -10.0 * static_cast<double>(answer.answer_tokens()), 1};
  }
  std::vector<std::int32_t> generate(const Prompt& prompt, std::size_t count,
                                     const std::function<bool(std::int32_t)>& go_on) override {
    std::string said = "?! ?! ?! ?! ?! ?! ?! ?!";
    for (const TaskSample& sample : known_)
      if (tokenizer_->encode(sample.prompt()) == prompt.ids) {
        said.clear();
        for (const std::string& answer : sample.answers) said += " " + answer;
      }
    std::vector<std::int32_t> ids;
    for (const std::int32_t id : tokenizer_->encode(said)) {
      if (ids.size() == count) break;
      ids.push_back(id);
      if (!go_on(id)) break;
    }
    return ids;
  }

 private:
  /// Returns the known sample with this prompt and right answer.
  const TaskSample* text_of(const AnsweredPrompt& answer) const {
    const std::string text = tokenizer_->decode(answer.ids);
    for (const TaskSample& sample : known_)
      if (text.starts_with(sample.prompt()) && text.ends_with(sample.answers.back())) return &sample;
    return nullptr;
  }
  const Tokenizer* tokenizer_;
  std::vector<TaskSample> known_;
};

std::vector<TaskSample> samples_of(const TaskDefinition& task, const Tokenizer& tokenizer) {
  static const std::vector<double> kDepths{0, 0.5, 1};
  static const std::string kText = [] {
    std::string text;
    for (int n = 0; n < 400; ++n) text += "Sentence " + std::to_string(n) + " says nothing. ";
    return text;
  }();
  return task.make(
      {.tokenizer = tokenizer, .length = 4096, .samples = 2, .seed = 5, .haystack = kText, .depths = kDepths});
}

TEST(TaskRun, EveryTaskIsSolvedByAModelThatKnowsAndMissedByOneThatDoesNot) {
  const test::FourByteTokenizer tokenizer;
  for (const TaskDefinition* task : task_definitions()) {
    const auto samples = samples_of(*task, tokenizer);
    const TaskPlan plan{.tokenizer = tokenizer, .rule = AnswerRule::kAll, .answer_tokens = task->answer_tokens};
    ScriptedModel knows(tokenizer, samples), ignorant(tokenizer, {});
    const auto results = run_task(samples, plan, knows, &ignorant);
    const TaskSummary summary = task_summary(results);
    const Json report = to_json(summary);
    EXPECT_EQ(report.at("questions"), samples.size()) << task->name;
    for (const char* score : {"accuracy", "recall", "partial"}) EXPECT_EQ(report.at(score), 1.0) << task->name << score;
    EXPECT_EQ(report.at("log_likelihood"), 0.0) << task->name;
    const Json& full = report.at("full");
    for (const char* score : {"accuracy", "recall", "partial", "f1", "first_token"})
      EXPECT_EQ(full.at(score), 0.0) << task->name << score;
    EXPECT_EQ(full.at("log_likelihood"), -10.0) << task->name;
    EXPECT_EQ(report.at("first_token_as_full"), 0.0) << task->name;
    EXPECT_TRUE(summary.is_failed()) << task->name;
    EXPECT_FALSE(task_summary(run_task(samples, plan, knows, nullptr)).is_failed()) << task->name;
  }
}

TEST(TaskRun, OfChoicesTheMostProbableIsTheAnswer) {
  const test::FourByteTokenizer tokenizer;
  const TaskSample question{
      .context = "Ice is cold.", .question = "\nIce is", .answers = {"cold"}, .choices = {"hot", "cold", "red"}};
  const TaskPlan plan{.tokenizer = tokenizer, .rule = AnswerRule::kAny};
  ScriptedModel knows(tokenizer, {question}), ignorant(tokenizer, {});
  const auto results = run_task(std::span(&question, 1), plan, knows, &ignorant);
  EXPECT_EQ(results[0].answer.text, "cold");
  EXPECT_EQ(results[0].answer.log_likelihood, 0);
  EXPECT_EQ(results[0].full->scores.accuracy, 0);
  const Json report = to_json(task_summary(results));
  EXPECT_EQ(report.at("accuracy"), 1.0);
  EXPECT_FALSE(report.contains("first_token"));
  EXPECT_FALSE(report.contains("partial"));
}

TEST(TaskRun, ResultsSurviveAJournal) {
  const test::FourByteTokenizer tokenizer;
  const auto samples = samples_of(kNeedleTask, tokenizer);
  ScriptedModel knows(tokenizer, samples);
  const auto results = run_task(samples, {.tokenizer = tokenizer}, knows, &knows);
  const test::TemporaryDirectory folder;
  Journal journal = Journal::create(folder.path() / "journal", Json::object());
  (void)run_task(std::span(samples).first(4), {.tokenizer = tokenizer}, knows, &knows, {}, &journal);
  Journal resumed = Journal::resume(folder.path() / "journal", Json::object());
  ScriptedModel ignorant(tokenizer, {});  // is asked the remaining questions
  const auto rest = run_task(samples, {.tokenizer = tokenizer}, ignorant, &ignorant, {}, &resumed);
  for (std::size_t n = 0; n < samples.size(); ++n) {
    EXPECT_EQ(to_json(rest[n]) == to_json(results[n]), n < 4) << n;
    const Json record = to_json(rest[n]);
    EXPECT_EQ(to_json(task_result_from(JsonCursor(record, "record"), samples[n], true)), record) << n;
  }
}

TEST(TaskReport, DifferencesAreInLogLikelihoodPerToken) {
  std::vector<TaskResult> results(2);
  for (std::size_t n = 0; n < 2; ++n) {
    results[n].answer.tokens = 4;
    results[n].answer.log_likelihood = n == 0 ? -12 : -4;  // −3 and −1 a token
    results[n].full = results[n].answer;
    results[n].full->log_likelihood = 0;
  }
  const LikelihoodDifference difference = task_summary(results).reference->difference;
  EXPECT_EQ(difference.log_likelihood, -2.0);
  // Student's t of 1 degree of freedom, 12.706, times the standard error of −3 and −1, which is 1.
  EXPECT_NEAR(difference.interval->first, -2 - 12.706, 1e-3);
  EXPECT_NEAR(difference.interval->second, -2 + 12.706, 1e-3);
}

TEST(EncodePrompt, AnswersBeginWhereIdsPart) {
  const test::FourByteTokenizer tokenizer;
  const TaskSample sample{.context = "abcd", .question = "efghij", .answers = {"xyz", "uvw"}};
  const Prompt prompt = encode_prompt(tokenizer, sample, AnswerRule::kAll);
  EXPECT_EQ(prompt.ids.size(), 3U);
  EXPECT_EQ(prompt.context, 1U);
  // "abcd" "efgh" "ij x" …: the prompt's last id is different.
  EXPECT_EQ(prompt.answers.front().first, 2U);
  EXPECT_EQ(tokenizer.decode(prompt.answers.front().ids), "abcdefghij xyz, uvw");
  const Prompt any =
      encode_prompt(tokenizer, {.context = "abcd", .question = "efg ", .answers = {"xyz", "uvw"}}, AnswerRule::kAny, 7);
  EXPECT_EQ(any.ids.front(), 7);
  EXPECT_EQ(any.context, 2U);
  EXPECT_EQ(any.answers.front().first, 3U);
  EXPECT_EQ(any.answers.front().answer_tokens(), 1U);
  EXPECT_EQ(any.longest(), 4U);
}

/// Ids of the random model as a prompt.
Prompt prompt_of(std::size_t tokens, std::size_t answer) {
  Prompt prompt;
  prompt.ids = TinyModel::tokens(tokens);
  prompt.context = tokens / 2;
  prompt.answers.push_back({TinyModel::tokens(tokens + answer), tokens});
  return prompt;
}

TEST(CachedAnswers, LikelihoodIsThatOfTheAnswersTokens) {
  TinyModel tiny;
  const Prompt prompt = prompt_of(40, 5);
  const std::vector<float> nll = document_nll(*tiny.decoder, prompt.answers.front().ids);
  double expected = 0;
  for (std::size_t t = 39; t < 44; ++t) expected -= nll[t];
  const auto likelihood = [&](const std::string& method, const std::vector<std::string>& settings) {
    CachedAnswers model(*tiny.decoder,
                        [&](const Prompt&) { return test::cache_of(tiny.model->config(), method, settings); });
    return model.likelihood(prompt, prompt.answers.front());
  };
  const AnswerLikelihood full = likelihood("full", {});
  EXPECT_NEAR(full.log_likelihood, expected, 1e-4);
  EXPECT_EQ(full.bytes_ratio, 1);
  const AnswerLikelihood streaming = likelihood("streaming", {"cache_size=8"});
  EXPECT_GT(std::abs(streaming.log_likelihood - expected), 1e-3);
  EXPECT_NEAR(streaming.bytes_ratio, 8.0 / 44, 1e-12);
}

TEST(CachedAnswers, AWholePrefillLeavesTheFirstTokenAsItIs) {
  TinyModel tiny;
  const Prompt prompt = prompt_of(40, 1);
  const auto of = [&](const std::string& method, const std::vector<std::string>& settings) {
    CachedAnswers model(*tiny.decoder,
                        [&](const Prompt&) { return test::cache_of(tiny.model->config(), method, settings); });
    return model.likelihood(prompt, prompt.answers.front()).log_likelihood;
  };
  const double full = of("full", {});
  EXPECT_NEAR(of("lagkv", {"sinks=1", "lag=4", "ratio=0.25", "prefix=40", "prefill=whole"}), full, 1e-5);
  EXPECT_GT(std::abs(of("lagkv", {"sinks=1", "lag=4", "ratio=0.25"}) - full), 1e-4);
}

}  // namespace
}  // namespace kvs
