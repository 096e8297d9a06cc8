#include "calibrate/compare/racing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/paired_difference.h"

namespace kvs {
namespace {

constexpr double kConfidence = 0.95;
bool beats(const CellScores& better, const CellScores& cell) {
  if (better.bytes > cell.bytes) return false;
  const std::size_t common = std::min(better.kl.size(), cell.kl.size());
  std::vector<double> ratios;
  for (std::size_t n = 0; n < common; ++n) ratios.push_back(log_divergence(cell.kl[n]) - log_divergence(better.kl[n]));
  if (ratios.empty()) return false;
  if (ratios.size() == 1) return ratios.front() > std::log(kClearOnOne);
  const PairedMean mean = paired_mean(ratios);
  return mean.mean - half_width(common, kConfidence) * mean.error > 0;
}

/// Returns the lowest divergence of the cells of at most `bytes`.
double reached(std::span<const CellScores> cells, double bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (const CellScores& cell : cells)
    if (!cell.kl.empty() && cell.bytes <= bytes) least = std::min(least, mean_kl(cell));
  return least;
}

/// Returns the seconds per document of some cells.
double cost(std::span<const CellScores> cells, std::span<const std::size_t> some) {
  double seconds = 0;
  for (const std::size_t n : some) seconds += cells[n].seconds / static_cast<double>(cells[n].kl.size());
  return seconds;
}

}  // namespace

double log_divergence(double kl) {
  constexpr double kLeast = 1e-9;
  return std::log(std::max(kl, kLeast));
}

double mean_kl(const CellScores& cell) {
  return std::reduce(cell.kl.begin(), cell.kl.end()) / static_cast<double>(cell.kl.size());
}

std::vector<bool> is_dominated(std::span<const CellScores> cells, std::span<const std::size_t> active) {
  std::vector<bool> result;
  for (const std::size_t n : active)
    result.push_back(std::ranges::any_of(cells, [&](const CellScores& other) { return beats(other, cells[n]); }));
  return result;
}

std::vector<std::size_t> pareto_front(std::span<const CellScores> cells) {
  std::size_t documents = 1;
  for (const CellScores& cell : cells) documents = std::max(documents, cell.kl.size());
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < cells.size(); ++n)
    if (cells[n].kl.size() == documents) order.push_back(n);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(cells[a].bytes, mean_kl(cells[a])) < std::pair(cells[b].bytes, mean_kl(cells[b]));
  });
  std::vector<std::size_t> front;
  for (const std::size_t n : order)
    if (front.empty() || mean_kl(cells[n]) < mean_kl(cells[front.back()])) front.push_back(n);
  return front;
}

std::vector<std::size_t> most_promising(std::span<const CellScores> cells, std::span<const std::size_t> active,
                                        std::size_t count) {
  std::vector<std::size_t> order(active.begin(), active.end());
  const auto behind = [&](std::size_t n) {
    return log_divergence(mean_kl(cells[n])) - log_divergence(reached(cells, cells[n].bytes));
  };
  std::ranges::stable_sort(order, {}, behind);
  order.resize(std::min(count, order.size()));
  std::ranges::sort(order);
  return order;
}

Round fit_to_time(Round round, std::span<const CellScores> cells, std::size_t documents, double seconds) {
  const auto passes = static_cast<double>(round.last - round.first);
  const std::vector<std::size_t> front = pareto_front(cells);
  const std::size_t wanted = std::max(round.last, std::min(documents, kFrontDocuments));
  const double kept = static_cast<double>(wanted - round.last) * cost(cells, front);
  while (round.cells.size() > front.size() && passes * cost(cells, round.cells) + kept > seconds)
    round.cells = most_promising(cells, round.cells, round.cells.size() - 1);
  const double each = cost(cells, round.cells);
  if (passes * each > seconds)
    round.last = round.first + (each > 0 ? static_cast<std::size_t>(std::max(0.0, seconds) / each) : 0);
  return round;
}

}  // namespace kvs
