// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/racing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/paired_difference.h"

namespace kvs::inline compare {
namespace {

constexpr double kConfidence = 0.95;
bool beats(const RaceScores& better, const RaceScores& one) {
  if (better.bytes > one.bytes) return false;
  const std::size_t common = std::min(better.kl.size(), one.kl.size());
  std::vector<double> ratios;
  for (std::size_t n = 0; n < common; ++n) ratios.push_back(log_divergence(one.kl[n]) - log_divergence(better.kl[n]));
  if (ratios.empty()) return false;
  if (ratios.size() == 1) return ratios.front() > std::log(kClearOnOne);
  const PairedMean mean = paired_mean(ratios);
  return mean.mean - half_width(common, kConfidence) * mean.error > 0;
}

/// Returns the lowest divergence of the configurations of at most `bytes`.
double reached(std::span<const RaceScores> scores, double bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (const RaceScores& one : scores)
    if (!one.kl.empty() && one.bytes <= bytes) least = std::min(least, mean_kl(one));
  return least;
}

/// Returns the seconds per document of some configurations.
double cost(std::span<const RaceScores> scores, std::span<const std::size_t> some) {
  double seconds = 0;
  for (const std::size_t n : some) seconds += scores[n].seconds / static_cast<double>(scores[n].kl.size());
  return seconds;
}

}  // namespace

double log_divergence(double kl) {
  constexpr double kLeast = 1e-9;
  return std::log(std::max(kl, kLeast));
}

double mean_kl(const RaceScores& one) {
  return std::reduce(one.kl.begin(), one.kl.end()) / static_cast<double>(one.kl.size());
}

std::vector<bool> is_dominated(std::span<const RaceScores> scores, std::span<const std::size_t> active) {
  std::vector<bool> result;
  for (const std::size_t n : active)
    result.push_back(std::ranges::any_of(scores, [&](const RaceScores& other) { return beats(other, scores[n]); }));
  return result;
}

std::vector<std::size_t> pareto_front(std::span<const RaceScores> scores) {
  std::size_t documents = 1;
  for (const RaceScores& one : scores) documents = std::max(documents, one.kl.size());
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < scores.size(); ++n)
    if (scores[n].kl.size() == documents) order.push_back(n);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(scores[a].bytes, mean_kl(scores[a])) < std::pair(scores[b].bytes, mean_kl(scores[b]));
  });
  std::vector<std::size_t> front;
  for (const std::size_t n : order)
    if (front.empty() || mean_kl(scores[n]) < mean_kl(scores[front.back()])) front.push_back(n);
  return front;
}

std::vector<std::size_t> most_promising(std::span<const RaceScores> scores, std::span<const std::size_t> active,
                                        std::size_t count) {
  std::vector<std::size_t> order(active.begin(), active.end());
  const auto behind = [&](std::size_t n) {
    return log_divergence(mean_kl(scores[n])) - log_divergence(reached(scores, scores[n].bytes));
  };
  std::ranges::stable_sort(order, {}, behind);
  order.resize(std::min(count, order.size()));
  std::ranges::sort(order);
  return order;
}

Round fit_to_time(Round round, std::span<const RaceScores> scores, std::size_t documents, double seconds) {
  const auto passes = static_cast<double>(round.last - round.first);
  const std::vector<std::size_t> front = pareto_front(scores);
  const std::size_t wanted = std::max(round.last, std::min(documents, kFrontDocuments));
  const double kept = static_cast<double>(wanted - round.last) * cost(scores, front);
  while (round.configurations.size() > front.size() && passes * cost(scores, round.configurations) + kept > seconds)
    round.configurations = most_promising(scores, round.configurations, round.configurations.size() - 1);
  const double each = cost(scores, round.configurations);
  if (passes * each > seconds)
    round.last = round.first + (each > 0 ? static_cast<std::size_t>(std::max(0.0, seconds) / each) : 0);
  return round;
}

}  // namespace kvs::inline compare
