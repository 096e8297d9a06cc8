#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"

namespace kvs {

/// The shares of the lowest bins that a summary gives, in per cent of the bins.
inline constexpr std::array<double, 5> kLowPercents{1, 5, 10, 25, 50};
/// The share of the energy that SpectrumSummary::bins_for_energy holds.
inline constexpr double kEnergyShare = 0.95;

/// One power spectrum in numbers. A spectrum without energy has zeros throughout, never NaN.
struct SpectrumSummary {
  std::size_t bins = 0;  // that the summary looks at
  double energy = 0;     // Σ power, each DFT bin that stands for a mirror pair counted twice
  std::array<double, kLowPercents.size()> low_share{};  // of the energy, in the lowest kLowPercents of the bins
  std::size_t bins_for_energy = 0;  // least m such that the lowest m bins hold kEnergyShare of the energy
  double flatness = 0;              // geometric / arithmetic mean of the bins' power: 1 for white noise, 0 for a tone
};

/// How many of `bins` bins are their lowest `percent` per cent: rounded to the nearest number, at least 1.
std::size_t low_bins(double percent, std::size_t bins) noexcept;

/// @param power    [bin], of a transform of `samples` tokens
/// @param with_dc  false: bins 1 … only, and percentages and counts of these
/// Power without DC below 1e-24 of the whole is the rounding of a constant signal (f32 states that vary at all leave
/// more than 1e-15/tokens) and counts as none.
SpectrumSummary summarise_power(std::span<const double> power, Transform transform, std::size_t samples, bool with_dc);

/// Energy share of each per cent step of the lowest bins: curve[i] = share held by the lowest i of the bins, i = 0 …
/// bins. All zeros if there is no energy.
std::vector<double> cumulative_energy(std::span<const double> power, Transform transform, std::size_t samples,
                                      bool with_dc);

/// FAEDKV's number of chunks (its default).
inline constexpr std::size_t kEnergyChunks = 22;
/// The share of the energy, DC included, in each of kEnergyChunks chunks of the spectrum (first_bin_of), or in each bin
/// where there are fewer. All zeros if there is no energy.
std::vector<double> chunk_shares(std::span<const double> power, Transform transform, std::size_t samples);

}  // namespace kvs
