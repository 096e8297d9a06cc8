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

namespace kvs {

/// How right a text is, each 0 … 1.
struct Scores {
  double accuracy = 0;  // 1: all answers are in the text, or one of alternatives
  double recall = 0;    // share of the answers that are in it; accuracy where they are alternatives
  double partial = 0;   // longest piece of an answer that is in it: mean over the answers, or the best alternative's
  double f1 = 0;        // of its first line's words, the best answer's

  static void fields(auto& scores, auto&& field) {
    field("accuracy", scores.accuracy)("recall", scores.recall)("partial", scores.partial)("f1", scores.f1);
  }
};

/// One model's answer to a question.
struct Answer {
  Scores scores = {};
  double log_likelihood = 0;
  std::size_t tokens = 0;         // of the right answer, whose log-likelihood it is
  std::int32_t first_token = -1;  // that was generated; -1: one of choices was taken
  bool first_right = false;       // it is the right answer's
  double bytes_ratio = 0;
  std::string text = {};

  static void fields(auto& answer, auto&& field) {
    field.inlined(answer.scores);
    field("log_likelihood", answer.log_likelihood)("answer_tokens", answer.tokens)("first_token", answer.first_token)(
        "first_right", answer.first_right)("bytes_ratio", answer.bytes_ratio)("text", answer.text);
  }
  static void check(const Answer& answer, const JsonCursor& json);
};

/// The answers to a question, as a result and a journal have them.
struct TaskResult {
  std::optional<std::size_t> length = {};  // tokens that were asked for
  std::optional<double> depth = {};        // 0 … 1
  std::size_t prompt_tokens = 0;
  Answer answer = {};
  std::optional<Answer> full = {};  // of the full cache

  static void fields(auto& result, auto&& field) {
    field.absent_or("length", result.length);
    field.absent_or("depth", result.depth);
    field("prompt_tokens", result.prompt_tokens)("answer", result.answer);
    field.absent_or("full", result.full);
  }
};

/// Means over answers.
struct AnswerMeans {
  /// Absent where choices were taken and nothing was generated.
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

/// How much more probable right answers are than with the full cache, a token.
struct LikelihoodDifference {
  double log_likelihood = 0;
  draw::Interval interval = {};  // 95 % over questions; absent for one question

  static void fields(auto& difference, auto&& field) {
    field("log_likelihood", difference.log_likelihood);
    field.absent_or("interval", difference.interval);
  }
};

/// What the answers to the questions of a task have in common (docs/tasks.md).
struct TaskSummary {
  /// The full cache, asked as well.
  struct Reference {
    std::optional<double> first_token_as_full = {};  // share of answers that begin alike
    AnswerMeans full;
    LikelihoodDifference difference;

    static void fields(auto& reference, auto&& field) {
      field.absent_or("first_token_as_full", reference.first_token_as_full);
      field("full", reference.full)("difference", reference.difference);
    }
  };
  std::size_t questions = 0;
  std::pair<std::size_t, std::size_t> prompt_tokens = {};  // the least and the most
  AnswerMeans means;
  std::optional<Reference> reference = {};

  static void fields(auto& summary, auto&& field) {
    field("questions", summary.questions)("prompt_tokens", summary.prompt_tokens);
    field.inlined(summary.means);
    field.inlined("full", summary.reference);
  }
  /// Whether the full cache, or where there is no other the one at work, misses most questions: the likelihood is the
  /// measure then.
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
  std::string dtype;
  ModelRecord model;
  std::vector<std::string> text_sha256;
  std::string command, tool_version;
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
/// Maps of depth × length: the share of the answer that is found, with the full cache, too, and the likelihood. No
/// panel if results have no depth.
draw::Chart retrieval_chart(const std::string& heading, std::span<const TaskResult> results);

}  // namespace kvs
