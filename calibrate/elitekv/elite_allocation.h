// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace kvs::inline calibrate {

/// The quantities that determine the size of an EliteKV cache.
struct EliteShape {
  std::size_t d_model = 0, kv_heads = 0, head_dim = 0;
  std::size_t chunks = 0;  // rotated channels of a head / 2
};

/// One way to divide a cache: r rotated chunks of every KV head and a latent of d_ckv values.
struct EliteAllocation {
  std::size_t r = 0, d_ckv = 0;

  /// Values per token and layer: 2rG + d_ckv.
  std::size_t values(const EliteShape& shape) const noexcept { return 2 * r * shape.kv_heads + d_ckv; }
  bool operator==(const EliteAllocation&) const = default;
};

/// An allocation, factorised jointly (J-LRD) or with separate keys and values (S-LRD).
struct EliteCandidate {
  EliteAllocation size;
  bool joint = true;
};

/// Default step of d_ckv: 128, or 8 if 2Gd < 1024.
std::size_t standard_rank_step(const EliteShape& shape) noexcept;

/// Returns all allocations, ascending in r, whose cache is exactly `ratio` of the full 2Gd values: 1 ≤ r < chunks,
/// d_ckv a multiple of `step` (0: standard_rank_step()) and, unless `allow_more_parameters`, at most
/// no_extra_parameters_rank(). Empty if there is none. Held-out perplexity must decide which of them is best.
/// @throws Error kUsage unless 0 < ratio ≤ 1.
/// Source: EliteKV, the choice of (r, d_ckv) for a cache ratio.
std::vector<EliteAllocation> elite_allocations(const EliteShape& shape, double ratio, bool allow_more_parameters,
                                               std::size_t step = 0);

}  // namespace kvs::inline calibrate
