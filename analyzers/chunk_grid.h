// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"

namespace kvs::inline analyzers {

/// How a spectrum over `samples` tokens is cut into chunks: chunk c = bins [⌊cB/C⌋, ⌊(c+1)B/C⌋) of B bins. Source:
/// FAEDKV, chunked spectrum. Deviation: with the half spectrum (default), a bin and its mirror image are kept or
/// removed together, so that filtered states stay real; `full_spectrum` is the paper's literal N bins, of which the
/// real part is taken.
struct ChunkGrid {
  Transform transform = Transform::kDft;
  bool full_spectrum = false;  // DFT only
  std::size_t chunks = 22, samples = 0;

  /// B: `samples` for the DCT and the full spectrum, ⌊samples/2⌋ + 1 for the half spectrum.
  std::size_t bins() const noexcept;
  std::size_t first_bin(std::size_t chunk) const noexcept { return first_bin_of(chunk, chunks, bins()); }
};

/// Returns gains for SpectralOps::filter that keep exactly the chunks of `kept`: [bins_of(transform, samples)]. Full
/// spectrum: the real part of the filtered signal is the half spectrum with weight (keep[k] + keep[N−k]) / 2.
std::vector<double> gains_keeping(const ChunkGrid& grid, std::span<const std::size_t> kept);
/// Returns gains whose row n keeps all chunks except ablated[n]: [ablated.size(), bins_of(transform, samples)].
std::vector<double> ablation_gains(const ChunkGrid& grid, std::span<const std::size_t> ablated);
/// Returns the number of chunks that a share r keeps: ⌊r·chunks + ½⌋, at least 1, at most all.
std::size_t kept_count(double share, std::size_t chunks) noexcept;
/// Returns the `count` chunks with the largest Δ (lowest index on ties), ascending.
std::vector<std::size_t> most_important(std::span<const double> delta, std::size_t count);

}  // namespace kvs::inline analyzers
