// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_summary.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"

namespace kvs::inline analyzers {
namespace {

// If the energy without DC is below this share of the total, it is rounding.
constexpr double kRoundingShare = 1e-24;

/// A DFT bin also represents its mirror image, except DC and, for an even length, the last bin.
double weight_of(Transform transform, std::size_t samples, std::size_t bin) {
  if (transform == Transform::kDct || bin == 0 || 2 * bin == samples) return 1;
  return 2;
}

/// Returns the energy of each counted bin; all zeros if that energy is rounding.
std::vector<double> energies(std::span<const double> power, Transform transform, std::size_t samples, bool with_dc) {
  if (power.size() != bins_of(transform, samples)) {
    throw Error(ErrorCode::kInternal, "spectrum summary", "power does not have the transform's number of bins");
  }
  std::vector<double> energy(power.size());
  double all = 0;
  for (std::size_t bin = 0; bin < power.size(); ++bin) {
    all += energy[bin] = weight_of(transform, samples, bin) * power[bin];
  }
  if (with_dc) return energy;
  energy.erase(energy.begin());
  double rest = 0;
  for (const double value : energy) rest += value;
  if (rest <= kRoundingShare * all) std::fill(energy.begin(), energy.end(), 0.0);
  return energy;
}

double flatness_of(std::span<const double> power) {
  double log_sum = 0, sum = 0;
  for (const double value : power) {
    if (value <= 0) return 0;
    log_sum += std::log(value);
    sum += value;
  }
  const auto count = static_cast<double>(power.size());
  return std::min(1.0, std::exp(log_sum / count) / (sum / count));
}

}  // namespace

std::size_t low_bins(double percent, std::size_t bins) noexcept {
  const auto rounded = static_cast<std::size_t>(std::floor(percent / 100 * static_cast<double>(bins) + 0.5));
  return std::min(bins, std::max<std::size_t>(1, rounded));
}

std::vector<double> cumulative_energy(std::span<const double> power, Transform transform, std::size_t samples,
                                      bool with_dc) {
  const std::vector<double> energy = energies(power, transform, samples, with_dc);
  std::vector<double> curve(energy.size() + 1);
  for (std::size_t bin = 0; bin < energy.size(); ++bin) curve[bin + 1] = curve[bin] + energy[bin];
  const double total = curve.back();
  if (total > 0) {
    for (double& value : curve) value /= total;
  }
  return curve;
}

SpectrumSummary summarise_power(std::span<const double> power, Transform transform, std::size_t samples, bool with_dc) {
  const std::vector<double> energy = energies(power, transform, samples, with_dc);
  SpectrumSummary summary;
  summary.bins = energy.size();
  for (const double value : energy) summary.energy += value;
  if (summary.energy <= 0) return summary;
  const std::vector<double> curve = cumulative_energy(power, transform, samples, with_dc);
  for (std::size_t i = 0; i < kLowPercents.size(); ++i)
    summary.low_share[i] = curve[low_bins(kLowPercents[i], summary.bins)];
  while (curve[summary.bins_for_energy] < kEnergyShare) ++summary.bins_for_energy;
  summary.flatness = flatness_of(power.subspan(with_dc ? 0 : 1));
  return summary;
}

std::vector<double> chunk_shares(std::span<const double> power, Transform transform, std::size_t samples) {
  const std::vector<double> curve = cumulative_energy(power, transform, samples, true);
  const std::size_t chunks = std::min(kEnergyChunks, power.size());
  std::vector<double> shares(chunks);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk)
    shares[chunk] =
        curve[first_bin_of(chunk + 1, chunks, power.size())] - curve[first_bin_of(chunk, chunks, power.size())];
  return shares;
}

}  // namespace kvs::inline analyzers
