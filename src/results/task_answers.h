// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"

namespace kvs::inline results {

/// Scores of a generated text, each between 0 and 1.
struct Scores {
  double accuracy = 0;  // 1 if the text contains all answers, or one of the alternatives
  double recall = 0;    // share of the answers in the text; for alternatives, equal to accuracy
  double partial = 0;   // longest part of an answer in the text: mean over answers, or best alternative
  double f1 = 0;        // F1 of the words of the first line, for the best answer

  static void fields(auto& scores, auto&& field) {
    field("accuracy", scores.accuracy)("recall", scores.recall)("partial", scores.partial)("f1", scores.f1);
  }
};

/// The answer of a model to a question.
struct Answer {
  Scores scores = {};
  double log_likelihood = 0;
  std::size_t tokens = 0;         // tokens of the right answer, which log_likelihood belongs to
  std::int32_t first_token = -1;  // first generated token; -1: the answer was selected from choices
  bool first_right = false;       // true if it equals the right answer's first token
  double bytes_ratio = 0;
  std::string text = {};

  static void fields(auto& answer, auto&& field) {
    field.inlined(answer.scores);
    field("log_likelihood", answer.log_likelihood)("answer_tokens", answer.tokens)("first_token", answer.first_token)(
        "first_right", answer.first_right)("bytes_ratio", answer.bytes_ratio)("text", answer.text);
  }
  static void check(const Answer& answer, const JsonCursor& json);
};

/// The answers to a question, as stored in results and journals.
struct TaskResult {
  std::optional<std::size_t> length = {};  // requested tokens
  std::optional<double> depth = {};        // 0 … 1
  std::size_t prompt_tokens = 0;
  Answer answer = {};
  std::optional<Answer> full = {};  // answer with the full cache

  static void fields(auto& result, auto&& field) {
    field.absent_or("length", result.length);
    field.absent_or("depth", result.depth);
    field("prompt_tokens", result.prompt_tokens)("answer", result.answer);
    field.absent_or("full", result.full);
  }
};

/// Means over answers.
struct AnswerMeans {
  /// Absent if answers were selected from choices and no text was generated.
  struct Text {
    double recall = 0, partial = 0, f1 = 0, first_token = 0;

    static void fields(auto& text, auto&& field) {
      field("recall", text.recall)("partial", text.partial)("f1", text.f1)("first_token", text.first_token);
    }
  };
  double accuracy = 0;
  std::optional<Text> text = {};
  double log_likelihood = 0;  // per token of the right answers
  double bytes_ratio = 0;

  static void fields(auto& means, auto&& field) {
    field("accuracy", means.accuracy);
    field.inlined("recall", means.text);
    field("log_likelihood", means.log_likelihood)("bytes_ratio", means.bytes_ratio);
  }
};

/// The difference of the right answers' log-likelihood per token from the full cache.
struct LikelihoodDifference {
  double log_likelihood = 0;
  draw::Interval interval = {};  // 95 % interval over questions; absent for one question

  static void fields(auto& difference, auto&& field) {
    field("log_likelihood", difference.log_likelihood);
    field.absent_or("interval", difference.interval);
  }
};

/// Summary of the answers to the questions of a task (docs/tasks.md).
struct TaskSummary {
  /// The results of the full cache on the same questions.
  struct Reference {
    std::optional<double> first_token_as_full = {};  // share of answers with the same first token
    AnswerMeans full;
    LikelihoodDifference difference;

    static void fields(auto& reference, auto&& field) {
      field.absent_or("first_token_as_full", reference.first_token_as_full);
      field("full", reference.full)("difference", reference.difference);
    }
  };
  std::size_t questions = 0;
  std::pair<std::size_t, std::size_t> prompt_tokens = {};  // minimum and maximum
  AnswerMeans means;
  std::optional<Reference> reference = {};

  static void fields(auto& summary, auto&& field) {
    field("questions", summary.questions)("prompt_tokens", summary.prompt_tokens);
    field.inlined(summary.means);
    field.inlined("full", summary.reference);
  }
  /// Returns true if the full cache (or the tested cache, if there is no reference) misses most questions. Use the
  /// log-likelihood as the measure in this case.
  bool is_failed() const { return (reference ? reference->full : means).accuracy < 0.5; }
};

/// The result of `kvcalibrate eval --task`.
struct TaskAnswers {
  std::string method, task, prefill;
  BosRecord bos = {};
  TaskSummary summary = {};
  std::optional<Json> parameters = {};
  std::optional<bool> fails_with_full_cache = {};
  std::vector<TaskResult> samples;
  std::string dtype = {};
  ModelRecord model = {};
  std::vector<std::string> text_sha256 = {};
  std::string command = {}, tool_version = {};
  std::optional<std::size_t> shared_bytes = {};
  InputDigests inputs = {};

  static void fields(auto& answers, auto&& field) {
    field("method", answers.method)("task", answers.task)("prefill", answers.prefill);
    field.absent_or("bos", answers.bos);
    field.inlined(answers.summary);
    field.absent_or("parameters", answers.parameters);
    field.absent_or("fails_with_full_cache", answers.fails_with_full_cache);
    field("samples", answers.samples)("dtype", answers.dtype)("model", answers.model)(
        "text_sha256", answers.text_sha256)("command", answers.command)("tool_version", answers.tool_version);
    field.absent_or("shared_bytes", answers.shared_bytes);
    field.inlined(answers.inputs);
  }
};

std::string to_text(const TaskAnswers& answers);
/// Draws depth × length maps of the share of the answer that is found, also with the full cache, and of the
/// log-likelihood. There is no panel if a result has no depth.
draw::Chart retrieval_chart(const std::string& heading, std::span<const TaskResult> results);

}  // namespace kvs::inline results
