#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"
#include "results/perturbation.h"
#include "states/state_source.h"

namespace kvs {

/// Bands of T bins: [0, ⌊T/2⌋), the same without bin 0, and [⌊T/2⌋, T).
enum class BinBand { kLow, kLowWithoutDc, kHigh };
inline constexpr std::array kBinBands{BinBand::kLow, BinBand::kLowWithoutDc, BinBand::kHigh};

/// Cosine similarities of one layer's states in two versions of a document, by band.
using BandSimilarity = std::array<double, kBinBands.size()>;

/// Cosine similarity of the DCT coefficients of two versions of a document, layer by layer: the coefficients of all
/// heads, channels and bins of the band are one vector. 1 where both versions have nothing in the band, 0 where one
/// has.
/// Source: FreqKV, figure 2. Ours: one vector a layer (the paper does not say over what it takes the cosine), and the
/// low band without DC beside it, because DC holds most of the energy of keys.
/// The sources' documents have the same number of tokens, at least 2. Memory: the states of one document.
/// @param layers  ascending
/// @return [layer], by position in `layers`
/// @throws Error kData naming document, layer and state if a state is not finite; Interrupted between layers.
std::vector<ByState<BandSimilarity>> compare_versions(SpectralOps& ops, StateSource& original, StateSource& perturbed,
                                                      std::size_t document, std::span<const std::size_t> layers);

}  // namespace kvs
