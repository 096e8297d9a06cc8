// SPDX-License-Identifier: Apache-2.0
#include "model/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvs::inline model {
namespace {

/// Turns the logits of one token into scores, in place.
void score(ExpertsConfig::Scores kind, std::span<float> logits) {
  if (kind == ExpertsConfig::Scores::kSigmoid) {
    for (float& value : logits) value = 1 / (1 + std::exp(-value));
    return;
  }
  const float largest = std::ranges::max(logits);
  for (float& value : logits) value = std::exp(value - largest);
  const float sum = std::accumulate(logits.begin(), logits.end(), 0.0F);
  for (float& value : logits) value /= sum;
}

/// Sets the scores of the experts outside the best groups to −∞.
void keep_best_groups(const ExpertsConfig& experts, std::span<float> scores) {
  const std::size_t size = experts.count / experts.groups;
  std::vector<float> sums(experts.groups);
  for (std::size_t group = 0; group < experts.groups; ++group) {
    std::array<float, 2> best{-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
    for (const float value : scores.subspan(group * size, size)) {
      if (value > best[0])
        best = {value, best[0]};
      else if (value > best[1])
        best[1] = value;
    }
    sums[group] = size == 1 || experts.group_scores == 1 ? best[0] : best[0] + best[1];
  }
  std::vector<std::size_t> order(experts.groups);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) { return sums[one] > sums[other]; });
  for (std::size_t n = experts.chosen_groups; n < order.size(); ++n)
    std::ranges::fill(scores.subspan(order[n] * size, size), -std::numeric_limits<float>::infinity());
}

}  // namespace

std::string group_problem(const ExpertsConfig& experts) {
  if (experts.count % experts.groups != 0)
    return "found " + std::to_string(experts.groups) + " groups, expected a divisor of " +
           std::to_string(experts.count) + " experts";
  if (experts.chosen_groups == 0 || experts.chosen_groups > experts.groups ||
      experts.chosen_groups * (experts.count / experts.groups) < experts.chosen)
    return "found " + std::to_string(experts.chosen_groups) + " chosen groups of " + std::to_string(experts.groups) +
           ", expected some that hold the " + std::to_string(experts.chosen) + " chosen experts";
  return {};
}

std::vector<ExpertTokens> route(const ExpertsConfig& experts, std::span<const float> logits,
                                std::span<const float> bias) {
  std::vector<ExpertTokens> tokens(experts.count);
  std::vector<float> scores(experts.count), choice(experts.count);
  std::vector<std::size_t> order(experts.count);
  const auto chosen = order.begin() + static_cast<std::ptrdiff_t>(experts.chosen);
  for (std::size_t row = 0; row < logits.size() / experts.count; ++row) {
    std::ranges::copy(logits.subspan(row * experts.count, experts.count), scores.begin());
    score(experts.scores, scores);
    std::ranges::copy(scores, choice.begin());
    for (std::size_t expert = 0; expert < bias.size(); ++expert) choice[expert] += bias[expert];
    if (experts.groups > 1) keep_best_groups(experts, choice);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, chosen, [&](std::size_t one, std::size_t other) {
      return choice[one] != choice[other] ? choice[one] > choice[other] : one < other;
    });
    float sum = 0;
    for (auto at = order.begin(); at != chosen; ++at) sum += scores[*at];
    const float factor = experts.scale / (experts.normalised ? std::max(sum, experts.least_sum) : 1);
    for (auto at = order.begin(); at != chosen; ++at) {
      tokens[*at].rows.push_back(static_cast<std::int32_t>(row));
      tokens[*at].weights.push_back(scores[*at] * factor);
    }
  }
  return tokens;
}

}  // namespace kvs::inline model
