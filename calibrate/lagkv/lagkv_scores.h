// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor_view.h"

namespace kvs::inline calibrate {

/// kLag: scales a partition by the range of the next one. kLocal: by its own range. kL2: scores by −‖k‖₂²
/// instead, which has the order of −‖k‖₂. The source does not compress layers 0 and 1 in that variant.
enum class LagkvVariant { kLag, kLocal, kL2 };

struct LagkvOptions {
  std::size_t sinks = 16;  // S: tokens at the start that are always kept
  std::size_t lag = 128;   // L: tokens of a partition
  double ratio = 0.25;     // r: ⌊rL⌋ tokens of a partition are kept
  LagkvVariant variant = LagkvVariant::kLag;
  double value_weight = 1;  // weight of the values' score relative to the keys'

  /// ⌊rL⌋.
  std::size_t kept() const noexcept { return static_cast<std::size_t>(ratio * static_cast<double>(lag)); }
};

using HeadRows = TensorView<const float, 2>;  // [token, head_dim], of one KV head

/// Returns scores [L] of the first L of 2L tokens. A score is the softmax over the partition's tokens of the unbiased
/// standard deviation over channels of the scaled state, for the keys after RoPE, plus the same for the values; in
/// double. kL2 returns −‖k‖₂² of each token. Source: LagKV, section 3. Deviations: a channel that is constant in the
/// reference contributes 0 (the public code divides by zero); the values' part may have another weight than the keys'.
/// @throws Error kData for a score that is not finite
std::vector<double> lagkv_scores(HeadRows k, HeadRows v, const LagkvOptions& options);

}  // namespace kvs::inline calibrate
