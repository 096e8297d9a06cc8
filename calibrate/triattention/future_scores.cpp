// SPDX-License-Identifier: Apache-2.0
#include "calibrate/triattention/future_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Subtracts the mean and divides by the deviation over all scores. Scores that hardly differ become small instead of
/// infinite, as in the authors' program.
void normalise_scores(std::vector<double>& scores) {
  constexpr double kLeastDeviation = 1e-6;
  const auto count = static_cast<double>(scores.size());
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / count;
  double squares = 0;
  for (const double score : scores) squares += (score - mean) * (score - mean);
  const double deviation = std::max(kLeastDeviation, std::sqrt(squares / count));
  for (double& score : scores) score = (score - mean) / deviation;
}

}  // namespace

FutureScores::FutureScores(std::shared_ptr<const QueryStatistics> statistics, std::vector<double> frequencies,
                           double factor, std::size_t horizon)
    : statistics_(std::move(statistics)),
      frequencies_(std::move(frequencies)),
      factor_(factor),
      cosines_(frequencies_.size()),
      sines_(frequencies_.size()) {
  for (std::size_t chunk = 0; chunk < frequencies_.size(); ++chunk) {
    std::size_t count = 0;
    for (std::size_t distance = 1; distance <= horizon; distance *= 2, ++count) {
      cosines_[chunk] += std::cos(frequencies_[chunk] * static_cast<double>(distance));
      sines_[chunk] += std::sin(frequencies_[chunk] * static_cast<double>(distance));
    }
    cosines_[chunk] /= static_cast<double>(count);
    sines_[chunk] /= static_cast<double>(count);
  }
}

/// Returns the mean over δ of E q rotated to position p + δ, [head_dim].
std::vector<double> FutureScores::future_query(std::size_t head, std::size_t position) const {
  const auto first = statistics_->mean.begin() + static_cast<std::ptrdiff_t>(head * statistics_->head_dim);
  std::vector<double> query(first, first + static_cast<std::ptrdiff_t>(statistics_->head_dim));
  for (std::size_t chunk = 0; chunk < statistics_->chunks; ++chunk) {
    const double angle = frequencies_[chunk] * static_cast<double>(position), co = std::cos(angle),
                 si = std::sin(angle);
    const double cosine = factor_ * (co * cosines_[chunk] - si * sines_[chunk]),
                 sine = factor_ * (si * cosines_[chunk] + co * sines_[chunk]);
    double &real = query[chunk], &imaginary = query[chunk + statistics_->chunks];
    const double was = real;
    real = was * cosine - imaginary * sine;
    imaginary = imaginary * cosine + was * sine;
  }
  return query;
}

/// Returns S_h of each key.
std::vector<double> FutureScores::head_scores(std::span<const float> keys, std::size_t head,
                                              std::size_t position) const {
  const std::size_t head_dim = statistics_->head_dim, chunks = statistics_->chunks, bands = statistics_->bands();
  const std::vector<double> query = future_query(head, position);
  std::vector<double> spread(bands);  // E|q_f| − |E q_f|
  for (std::size_t band = 0; band < bands; ++band)
    spread[band] = (band < chunks ? factor_ : 1) *
                   (double{statistics_->magnitude[head * bands + band]} - statistics_->mean_magnitude(head, band));
  std::vector<double> scores(keys.size() / head_dim);
  for (std::size_t row = 0; row < scores.size(); ++row) {
    const float* const key = keys.data() + row * head_dim;
    double score = std::inner_product(query.begin(), query.end(), key, 0.0);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const double real = double{key[chunk]}, imaginary = double{key[chunk + chunks]};
      score += spread[chunk] * std::sqrt(real * real + imaginary * imaginary);
    }
    for (std::size_t band = chunks; band < bands; ++band) score += spread[band] * std::abs(double{key[band + chunks]});
    scores[row] = score;
  }
  return scores;
}

std::vector<double> FutureScores::scores(std::span<const float> keys, std::size_t kv_head, std::size_t kv_heads,
                                         std::size_t position) const {
  const std::size_t group = statistics_->query_heads / kv_heads;
  std::vector<double> best;
  for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    std::vector<double> of_head = head_scores(keys, head, position);
    normalise_scores(of_head);
    if (best.empty()) best.assign(of_head.size(), -std::numeric_limits<double>::infinity());
    for (std::size_t row = 0; row < best.size(); ++row) best[row] = std::max(best[row], of_head[row]);
  }
  if (std::ranges::any_of(best, [](double score) { return !std::isfinite(score); }))
    throw Error(ErrorCode::kData, "triattention", "found a score that is not finite, expected finite keys");
  return best;
}

}  // namespace kvs::inline calibrate
