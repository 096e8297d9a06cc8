// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/oscar/rotations.h"

namespace kvs::inline calibrate {

struct OscarOptions {
  std::size_t sinks = 64;    // S0: first tokens, in 16 bits
  std::size_t recent = 256;  // W: last tokens, in 16 bits; at least 1
  std::size_t group = 128;   // values of a row that share a scale and a minimum; a power of two of at least 4
  double clip_k = 0.96;      // quantile of a row's magnitudes that its keys are clipped to; 1: none
  double clip_v = 0.92;

  /// Returns the values of a group, which divide a head: a head of fewer values is one group.
  std::size_t values_of_group(std::size_t head_dim) const noexcept {
    return group < head_dim ? std::gcd(group, head_dim) : head_dim;
  }
};

/// Reads the options of the selected layer. @throws Error like Parameters
OscarOptions oscar_options(Parameters& parameters);

/// Limits the values of a row to ±t, where t is the magnitude at index ⌊quantile · values⌋ (at most the last) of the
/// row's ascending magnitudes. O(values).
void clip_row(std::span<float> row, double quantile);

/// The rotations of a layer as weights of a backend.
struct OscarProducts {
  using Weights = std::vector<std::unique_ptr<Weight>>;  // [kv_head]

  Weights keys, values;  // x R, of queries and keys, and of values
  Weights outputs;       // x Rᵀ of the rotation of values
};
std::shared_ptr<const OscarProducts> make_oscar_products(Backend& backend, const OscarRotations& rotations);

/// Queries and keys are rotated by R_K after RoPE, which leaves their products unchanged. Values are rotated by R_V and
/// the attention's output by R_Vᵀ. The first S0 and the last W tokens are stored in 16 bits. The row of a token that
/// leaves the last W is clipped (clip_row), then coded in 2 bits with a minimum and a step of 16 bits for each group.
/// Attention decodes the rows that it reads.
/// Source: Zhou et al. (2026), OSCAR, arXiv:2605.17757, sections 3 and 4, and its public code. Deviations: a group has
/// its minimum where the authors' code has the zero point, −minimum / step. Minimum and step are rounded to f16 before
/// the codes are computed, and a tie goes to the even code. A token reads itself and the W tokens before it in 16 bits;
/// the paper's W include the token. Clipping runs on the host.
/// @param products  nullptr: attend() throws, since the rotations are missing
std::unique_ptr<LayerCache> make_oscar_cache(const OscarOptions& options, std::size_t head_dim,
                                             std::shared_ptr<const OscarProducts> products);

}  // namespace kvs::inline calibrate
