// SPDX-License-Identifier: Apache-2.0
#include "calibrate/lagkv/lagkv_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

HeadRows partition(HeadRows rows, std::size_t first, std::size_t count) {
  const std::size_t head_dim = rows.extent(1);
  return {rows.span().subspan(first * head_dim, count * head_dim), {count, head_dim}};
}

/// Adds weight · softmax over t of the standard deviation over channels of (x − min)/(max − min) to scores[t], with min
/// and max per channel over `reference`.
void add_scores(HeadRows x, HeadRows reference, double weight, std::vector<double>& scores) {
  const auto [tokens, channels] = x.shape();
  std::vector<double> low(channels, std::numeric_limits<double>::infinity()), factor(channels, 0.0);
  std::vector<double> high(channels, -std::numeric_limits<double>::infinity());
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      low[channel] = std::min(low[channel], double{reference(token, channel)});
      high[channel] = std::max(high[channel], double{reference(token, channel)});
    }
  }
  for (std::size_t channel = 0; channel < channels; ++channel)
    if (high[channel] > low[channel]) factor[channel] = 1.0 / (high[channel] - low[channel]);

  std::vector<double> deviation(tokens), scaled(channels);
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::size_t channel = 0; channel < channels; ++channel)
      scaled[channel] = factor[channel] * (x(token, channel) - low[channel]);
    const double mean = std::accumulate(scaled.begin(), scaled.end(), 0.0) / static_cast<double>(channels);
    double squares = 0;
    for (const double value : scaled) squares += (value - mean) * (value - mean);
    deviation[token] = channels > 1 ? std::sqrt(squares / static_cast<double>(channels - 1)) : 0.0;
  }
  const double largest = *std::ranges::max_element(deviation);
  double sum = 0;
  for (double& value : deviation) sum += value = std::exp(value - largest);
  for (std::size_t token = 0; token < tokens; ++token) scores[token] += weight * (deviation[token] / sum);
}

}  // namespace

std::vector<double> lagkv_scores(HeadRows k, HeadRows v, const LagkvOptions& options) {
  const std::size_t lag = options.lag;
  std::vector<double> scores(lag, 0.0);
  if (options.variant == LagkvVariant::kL2) {
    for (std::size_t token = 0; token < lag; ++token)
      for (const float value : k.slice(token).span()) scores[token] -= double{value} * value;
  } else {
    const std::size_t reference = options.variant == LagkvVariant::kLag ? lag : 0;
    add_scores(partition(k, 0, lag), partition(k, reference, lag), 1, scores);
    add_scores(partition(v, 0, lag), partition(v, reference, lag), options.value_weight, scores);
  }
  if (std::ranges::any_of(scores, [](double score) { return !std::isfinite(score); }))
    throw Error(ErrorCode::kData, "lagkv", "found a score that is not finite, expected finite states");
  return scores;
}

}  // namespace kvs::inline calibrate
