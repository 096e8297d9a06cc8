// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"

namespace kvs::inline analyzers {

/// The shares of the lowest bins in a summary, in per cent of the bins.
inline constexpr std::array<double, 5> kLowPercents{1, 5, 10, 25, 50};
/// The share of the energy for SpectrumSummary::bins_for_energy.
inline constexpr double kEnergyShare = 0.95;

/// Summary of one power spectrum. A spectrum without energy gives zeros throughout, never NaN.
struct SpectrumSummary {
  std::size_t bins = 0;  // number of bins considered
  double energy = 0;     // Σ power; a DFT bin that represents a mirror pair counts twice
  std::array<double, kLowPercents.size()> low_share{};  // of the energy, in the lowest kLowPercents of the bins
  std::size_t bins_for_energy = 0;  // smallest m such that the lowest m bins hold kEnergyShare of the energy
  double flatness = 0;              // geometric / arithmetic mean of the bins' power: 1 for white noise, 0 for a tone
};

/// Returns the number of bins in the lowest `percent` per cent of `bins`: rounded to nearest, at least 1.
std::size_t low_bins(double percent, std::size_t bins) noexcept;

/// Summarises a power spectrum.
/// @param power    [bin], of a transform of `samples` tokens
/// @param with_dc  false: only bins 1 …; percentages and counts refer to these bins Power without DC below 1e-24 of the
/// total counts as none. It is the rounding of a constant signal: f32 states that vary at all leave more than
/// 1e-15/tokens.
SpectrumSummary summarise_power(std::span<const double> power, Transform transform, std::size_t samples, bool with_dc);

/// Returns the energy share of the lowest bins: curve[i] = share held by the lowest i bins, i = 0 … bins. All zeros if
/// there is no energy.
std::vector<double> cumulative_energy(std::span<const double> power, Transform transform, std::size_t samples,
                                      bool with_dc);

/// FAEDKV's default number of chunks.
inline constexpr std::size_t kEnergyChunks = 22;
/// Returns the share of the energy, DC included, in each of kEnergyChunks chunks of the spectrum (first_bin_of()), or
/// in each bin if there are fewer bins. All zeros if there is no energy.
std::vector<double> chunk_shares(std::span<const double> power, Transform transform, std::size_t samples);

}  // namespace kvs::inline analyzers
