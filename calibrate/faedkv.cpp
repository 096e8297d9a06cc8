#include "calibrate/faedkv.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/paired_difference.h"

namespace kvs {
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

std::vector<std::vector<std::optional<double>>> AblationSums::losses(std::size_t layer) const {
  const auto scored = static_cast<double>(scored_per_document);
  std::vector<std::vector<std::optional<double>>> losses(ablated.front()[layer].size());
  for (std::size_t chunk = 0; chunk < losses.size(); ++chunk) {
    for (std::size_t n = 0; n < base.size(); ++n) {
      const std::optional<double>& sum = ablated[n][layer][chunk];
      losses[chunk].push_back(sum ? std::optional((*sum - base[n]) / scored) : std::nullopt);
    }
  }
  return losses;
}

AblationResult ablation_result(const AblationSums& sums) {
  const auto scored = static_cast<double>(sums.scored_per_document * sums.base.size());
  AblationResult result;
  result.nll_base = std::accumulate(sums.base.begin(), sums.base.end(), 0.0) / scored;
  std::vector<double> means(sums.base);
  for (double& mean : means) mean /= static_cast<double>(sums.scored_per_document);
  result.nll_error = paired_mean(means).error;
  for (std::size_t layer = 0; layer < sums.layers(); ++layer) {
    auto& deltas = result.delta.emplace_back();
    auto& documents = result.documents.emplace_back();
    auto& intervals = result.interval.emplace_back();
    for (const auto& losses : sums.losses(layer)) {
      std::vector<double> differences;
      for (const std::optional<double>& loss : losses)
        if (loss) differences.push_back(*loss);
      const PairedDifference difference = paired_difference(differences);
      deltas.push_back(growth(difference.mean));  // documents are equally long: PPL/PPL_base = exp(mean difference)
      documents.push_back(differences.size());
      intervals.push_back(difference.interval);
    }
  }
  return result;
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

std::vector<double> scaled_to_unit(std::span<const double> delta) {
  const auto [least, most] = std::ranges::minmax(delta);
  std::vector<double> scaled(delta.begin(), delta.end());
  for (double& value : scaled) value = most > least ? (value - least) / (most - least) : 0;
  return scaled;
}

}  // namespace kvs
