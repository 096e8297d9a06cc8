#include "model/routing.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

std::vector<ExpertTokens> route(const ExpertsConfig& experts, std::span<const float> logits) {
  std::vector<ExpertTokens> tokens(experts.count);
  std::vector<float> scores(experts.count);
  std::vector<std::size_t> order(experts.count);
  const auto chosen = order.begin() + static_cast<std::ptrdiff_t>(experts.chosen);
  for (std::size_t row = 0; row < logits.size() / experts.count; ++row) {
    std::ranges::copy(logits.subspan(row * experts.count, experts.count), scores.begin());
    score(experts.scores, scores);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, chosen, [&](std::size_t one, std::size_t other) {
      return scores[one] != scores[other] ? scores[one] > scores[other] : one < other;
    });
    float sum = 0;
    for (auto at = order.begin(); at != chosen; ++at) sum += scores[*at];
    const float factor = experts.normalised ? 1 / sum : 1;
    for (auto at = order.begin(); at != chosen; ++at) {
      tokens[*at].rows.push_back(static_cast<std::int32_t>(row));
      tokens[*at].weights.push_back(scores[*at] * factor);
    }
  }
  return tokens;
}

}  // namespace kvs::inline model
