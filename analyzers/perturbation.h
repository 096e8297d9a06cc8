// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"
#include "results/perturbation.h"
#include "states/state_source.h"

namespace kvs::inline analyzers {

/// Bands of T bins: [0, ⌊T/2⌋), the same without bin 0, and [⌊T/2⌋, T).
enum class BinBand { kLow, kLowWithoutDc, kHigh };
inline constexpr std::array kBinBands{BinBand::kLow, BinBand::kLowWithoutDc, BinBand::kHigh};

/// Cosine similarities of one layer's states in two versions of a document, by band.
using BandSimilarity = std::array<double, kBinBands.size()>;

/// Returns the cosine similarity of the DCT coefficients of two versions of a document, layer by layer. The
/// coefficients of all heads, channels and bins of a band form one vector. 1 if both versions have no energy in the
/// band, 0 if only one has. Source: FreqKV, figure 2. Choices of this project: one vector per layer, because the paper
/// does not say over what it takes the cosine; and the low band also without DC, because DC holds most of the energy of
/// keys. The sources' documents must have the same number of tokens, at least 2. Memory: the states of one document.
/// @param layers  ascending
/// @return [layer], by index in `layers`
/// @throws Error kData naming document, layer and state if a state is not finite; Interrupted between layers.
std::vector<ByState<BandSimilarity>> compare_versions(SpectralOps& ops, StateSource& original, StateSource& perturbed,
                                                      std::size_t document, std::span<const std::size_t> layers);

}  // namespace kvs::inline analyzers
