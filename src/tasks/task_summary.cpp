// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_summary.h"

#include <algorithm>

#include "eval/paired_difference.h"

namespace kvs::inline tasks {
namespace {

/// Sums over answers.
struct AnswerSum {
  std::size_t answers = 0, generated = 0, tokens = 0;
  Scores scores;
  double first_right = 0, log_likelihood = 0, bytes_ratio = 0;

  void add(const Answer& answer) {
    ++answers;
    tokens += answer.tokens;
    generated += answer.first_token >= 0 ? 1 : 0;
    scores.accuracy += answer.scores.accuracy;
    scores.recall += answer.scores.recall;
    scores.partial += answer.scores.partial;
    scores.f1 += answer.scores.f1;
    first_right += answer.first_right ? 1 : 0;
    log_likelihood += answer.log_likelihood;
    bytes_ratio += answer.bytes_ratio;
  }
  double mean(double sum) const { return sum / static_cast<double>(answers); }

  AnswerMeans means() const {
    AnswerMeans means{.accuracy = mean(scores.accuracy),
                      .log_likelihood = log_likelihood / static_cast<double>(tokens),
                      .bytes_ratio = mean(bytes_ratio)};
    if (generated > 0)
      means.text = {mean(scores.recall), mean(scores.partial), mean(scores.f1),
                    first_right / static_cast<double>(generated)};
    return means;
  }
};

/// Mean over questions of an answer's log-likelihood per token with this cache, less that with the full one.
LikelihoodDifference difference_of(std::span<const TaskResult> results) {
  std::vector<double> differences;
  for (const TaskResult& result : results)
    differences.push_back((result.answer.log_likelihood - result.full->log_likelihood) /
                          static_cast<double>(result.answer.tokens));
  const auto [mean, error] = paired_mean(differences);
  if (differences.size() < 2) return {mean};
  const double half = half_width(differences.size(), 0.95) * error;
  return {mean, std::pair(mean - half, mean + half)};
}

}  // namespace

TaskSummary task_summary(std::span<const TaskResult> results) {
  AnswerSum sum, full;
  double as_full = 0;
  for (const TaskResult& result : results) {
    sum.add(result.answer);
    if (!result.full) continue;
    full.add(*result.full);
    as_full += result.answer.first_token == result.full->first_token ? 1 : 0;
  }
  const auto [least, most] = std::ranges::minmax(results, {}, &TaskResult::prompt_tokens);
  TaskSummary summary{
      .questions = results.size(), .prompt_tokens = {least.prompt_tokens, most.prompt_tokens}, .means = sum.means()};
  if (full.answers == 0) return summary;
  summary.reference = {.full = full.means(), .difference = difference_of(results)};
  if (sum.generated > 0) summary.reference->first_token_as_full = sum.mean(as_full);
  return summary;
}

}  // namespace kvs::inline tasks
