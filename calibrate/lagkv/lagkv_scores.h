#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor_view.h"

namespace kvs {

/// kLag: a partition is scaled by the range of the next one. kLocal: by its own. kL2: it is scored by −‖k‖₂ instead
/// (but in layers 0 and 1, which the source leaves alone in that variant).
enum class LagkvVariant { kLag, kLocal, kL2 };

struct LagkvOptions {
  std::size_t sinks = 16;  // S: tokens at the start that stay
  std::size_t lag = 128;   // L: tokens of a partition
  double ratio = 0.25;     // r: ⌊rL⌋ of a partition's tokens stay
  LagkvVariant variant = LagkvVariant::kLag;
  double value_weight = 1;  // of the values' score beside the keys'

  /// ⌊rL⌋.
  std::size_t kept() const noexcept { return static_cast<std::size_t>(ratio * static_cast<double>(lag)); }
};

using HeadRows = TensorView<const float, 2>;  // [token, head_dim], of one KV head

/// Scores [L] of the first L of 2L tokens: softmax over the partition's tokens of the unbiased standard deviation over
/// channels of the scaled state, of the keys after RoPE plus of the values; in double.
/// Source: LagKV, section 3. Deviations: a channel that is constant in the reference contributes 0, where the public
/// code divides by zero; the values' part may have another weight than the keys'.
/// @throws Error kData for a score that is not finite
std::vector<double> lagkv_scores(HeadRows k, HeadRows v, const LagkvOptions& options);

}  // namespace kvs
