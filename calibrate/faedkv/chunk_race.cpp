// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/chunk_race.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "eval/paired_difference.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Half widths of intervals in standard errors, by the number of documents.
class Quantiles {
 public:
  explicit Quantiles(double confidence) : confidence_(confidence) {}
  double operator()(std::size_t documents) {
    const auto [entry, added] = known_.try_emplace(documents);
    if (added) entry->second = half_width(documents, confidence_);
    return entry->second;
  }

 private:
  double confidence_;
  std::map<std::size_t, double> known_;
};

/// Returns the mean of a − b over common documents in half widths of its interval: beyond ±1 the interval excludes 0.
double clearance(std::span<const std::optional<double>> a, std::span<const std::optional<double>> b,
                 Quantiles& quantiles) {
  std::vector<double> differences;
  for (std::size_t n = 0; n < a.size(); ++n)
    if (a[n] && b[n]) differences.push_back(*a[n] - *b[n]);
  if (differences.size() < 2) return 0;
  const auto [mean, error] = paired_mean(differences);
  if (mean == 0) return 0;  // also if both are equal
  return mean / (quantiles(differences.size()) * error);
}

/// Returns the `rank`-th largest clearance in one direction: above 1 if the chunk is clear of `rank` others.
double clear_of(std::vector<double> clearances, std::size_t rank) {
  if (rank == 0) return kInfinity;
  if (rank > clearances.size()) return -kInfinity;  // all chunks are kept: none can be dropped
  std::ranges::nth_element(clearances, clearances.begin() + static_cast<std::ptrdiff_t>(rank - 1), std::greater{});
  return clearances[rank - 1];
}

}  // namespace

ChunkRace judge_chunks(const ChunkLosses& losses, std::size_t kept, double confidence) {
  Quantiles quantiles(confidence);
  ChunkRace race;
  for (std::size_t chunk = 0; chunk < losses.size(); ++chunk) {
    std::vector<double> above, below;
    for (std::size_t other = 0; other < losses.size(); ++other) {
      if (other == chunk) continue;
      const double clear = clearance(losses[chunk], losses[other], quantiles);
      above.push_back(clear);
      below.push_back(-clear);
    }
    const double to_keep = clear_of(above, losses.size() - kept), to_drop = clear_of(below, kept);
    race.margin.push_back(std::max(to_keep, to_drop));
    race.verdict.push_back(to_keep > 1   ? ChunkVerdict::kKept
                           : to_drop > 1 ? ChunkVerdict::kDropped
                                         : ChunkVerdict::kOpen);
  }
  return race;
}

std::vector<std::size_t> kept_chunks(const ChunkRace& race, std::span<const double> delta, std::size_t kept) {
  std::vector<std::size_t> order(delta.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return race.verdict[a] != race.verdict[b] ? race.verdict[a] > race.verdict[b] : delta[a] > delta[b];
  });
  order.resize(kept);
  std::ranges::sort(order);
  return order;
}

std::vector<std::vector<std::size_t>> open_chunks(std::span<const ChunkRace> races,
                                                  std::span<const std::vector<std::size_t>> among, std::size_t most) {
  struct Open {
    double margin;
    std::size_t race, chunk;
  };
  std::vector<Open> open;
  for (std::size_t n = 0; n < races.size(); ++n)
    for (const std::size_t chunk : among[n])
      if (races[n].verdict[chunk] == ChunkVerdict::kOpen) open.push_back({races[n].margin[chunk], n, chunk});
  std::ranges::stable_sort(open, {}, &Open::margin);
  open.resize(std::min(most, open.size()));
  std::vector<std::vector<std::size_t>> chosen(races.size());
  for (const Open& entry : open) chosen[entry.race].push_back(entry.chunk);
  for (auto& chunks : chosen) std::ranges::sort(chunks);
  return chosen;
}

std::size_t chunks_to_go_on(std::size_t open, std::size_t documents, std::size_t passes) noexcept {
  if (open * documents <= passes) return open;
  constexpr int kHalvings = 50;
  const auto spent = [&](double factor) {
    double chunks = static_cast<double>(open), sum = 0;
    for (std::size_t n = 0; n < documents; ++n) sum += chunks *= factor;
    return sum;
  };
  double low = 0, high = 1;
  for (int n = 0; n < kHalvings; ++n) {
    const double factor = (low + high) / 2;
    (spent(factor) <= static_cast<double>(passes) ? low : high) = factor;
  }
  return std::min(static_cast<std::size_t>(std::lround(static_cast<double>(open) * low)), passes);
}

std::vector<std::size_t> shuffled_documents(std::size_t documents, std::uint64_t seed) {
  std::vector<std::size_t> order(documents);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);  // std::shuffle differs between platforms
  for (std::size_t left = documents; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

}  // namespace kvs::inline calibrate
