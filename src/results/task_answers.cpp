// SPDX-License-Identifier: Apache-2.0
#include "results/task_answers.h"

#include <iomanip>
#include <sstream>

#include "io/record.h"
#include "results/evaluation.h"

namespace kvs::inline results {
namespace {

std::string digits(double value, int count) {
  std::ostringstream text;
  text << std::setprecision(count) << value;
  return text.str();
}
std::string percent_text(double share) { return digits(100 * share, 3) + " %"; }
std::string likelihood(double value) { return digits(value, 4); }

std::string reference_text(const TaskSummary::Reference& reference) {
  const auto& [mean, interval] = reference.difference;
  std::string text = "the full cache: " + percent_text(reference.full.accuracy) + " right, log-likelihood " +
                     likelihood(reference.full.log_likelihood) + "; difference " + likelihood(mean);
  if (interval) text += " (95 % " + likelihood(interval->first) + " to " + likelihood(interval->second) + ")";
  if (reference.first_token_as_full)
    text += "; the same first token in " + percent_text(*reference.first_token_as_full);
  return text;
}

}  // namespace

void Answer::check(const Answer& answer, const JsonCursor& json) {
  for (const char* share : {"accuracy", "recall", "partial", "f1"})
    if (const double found = json.at(share).real(); found < 0 || found > 1) json.at(share).fail("a number from 0 to 1");
  (void)record_size(json.at("answer_tokens"), 1);
  (void)record_real(json.at("log_likelihood"));
  (void)record_real(json.at("bytes_ratio"));
  if (answer.first_token < -1) json.at("first_token").fail("-1 or an id");
}

std::string to_text(const TaskAnswers& answers) {
  const TaskSummary& summary = answers.summary;
  const auto [least, most] = summary.prompt_tokens;
  std::string text = answers.method + ": " + percent_text(summary.means.accuracy) + " of " +
                     std::to_string(summary.questions) + " questions of " + std::to_string(least) +
                     (most > least ? " to " + std::to_string(most) : "") + " tokens right";
  if (const auto& said = summary.means.text)
    text += ", " + percent_text(said->recall) + " of the answers, partial " + percent_text(said->partial) +
            ", first token " + percent_text(said->first_token);
  text += "\n  log-likelihood " + likelihood(summary.means.log_likelihood) + " a token of the answer, cache " +
          percent_text(summary.means.bytes_ratio) + " of the full one\n";
  if (summary.reference) text += "  " + reference_text(*summary.reference) + '\n';
  if (answers.shared_bytes)
    text += "  besides the cache, " + shared_bytes_text(*answers.shared_bytes, answers.model.rope.window) + '\n';
  return text;
}

}  // namespace kvs::inline results
