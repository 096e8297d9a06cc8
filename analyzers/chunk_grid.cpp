// SPDX-License-Identifier: Apache-2.0
#include "analyzers/chunk_grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvs::inline analyzers {

std::size_t ChunkGrid::bins() const noexcept {
  return full_spectrum && transform == Transform::kDft ? samples : bins_of(transform, samples);
}

std::vector<double> gains_keeping(const ChunkGrid& grid, std::span<const std::size_t> kept) {
  std::vector<double> keep(grid.bins(), 0.0);
  for (const std::size_t chunk : kept)
    std::fill(keep.begin() + static_cast<std::ptrdiff_t>(grid.first_bin(chunk)),
              keep.begin() + static_cast<std::ptrdiff_t>(grid.first_bin(chunk + 1)), 1.0);
  const std::size_t half = bins_of(grid.transform, grid.samples);
  if (keep.size() == half && !grid.full_spectrum) return keep;
  std::vector<double> gains(half);
  for (std::size_t bin = 0; bin < half; ++bin) gains[bin] = (keep[bin] + keep[(grid.samples - bin) % grid.samples]) / 2;
  return gains;
}

std::vector<double> ablation_gains(const ChunkGrid& grid, std::span<const std::size_t> ablated) {
  std::vector<double> gains;
  for (const std::size_t chunk : ablated) {
    std::vector<std::size_t> kept(grid.chunks);
    std::iota(kept.begin(), kept.end(), 0);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(chunk));
    const auto row = gains_keeping(grid, kept);
    gains.insert(gains.end(), row.begin(), row.end());
  }
  return gains;
}

std::size_t kept_count(double share, std::size_t chunks) noexcept {
  const auto rounded = static_cast<std::size_t>(std::floor(share * static_cast<double>(chunks) + 0.5));
  return std::clamp<std::size_t>(rounded, 1, chunks);
}

std::vector<std::size_t> most_important(std::span<const double> delta, std::size_t count) {
  std::vector<std::size_t> order(delta.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return delta[a] > delta[b]; });
  order.resize(std::min(count, order.size()));
  std::ranges::sort(order);
  return order;
}

}  // namespace kvs::inline analyzers
