// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace kvs::inline model {

enum class NormKind : std::uint8_t { kRms, kLayer };

/// Normalisation of queries and keys: none, over each head's channels, or over all heads of a token. Its kind is that
/// of the other norms; a LayerNorm of heads may have gains of each head.
enum class QkNorm : std::uint8_t { kNone, kHead, kRow };

/// The computation of a family's layers apart from geometry and constants. Part of a row of the architecture table.
struct Arithmetic {
  NormKind norm = NormKind::kRms;  // kLayer: with a bias
  bool input_norms = true;         // norms of the inputs of both blocks
  bool output_norms = false;       // norms of each block's output before it is added to the residual stream (RMS only)
  QkNorm qk_norm = QkNorm::kNone;
  bool norms_after_rope = false;  // QkNorm follows RoPE, kHead and RMS only
  bool value_norm = false;        // RMS of each head's values, without a gain
  Activation activation = Activation::kSilu;
  bool gated = true;               // feed-forward: activation(gate) · up; otherwise activation(up)
  bool parallel_residual = false;  // both blocks read the same residual stream
  bool scaled_embeddings = false;  // by sqrt(d_model)
};

}  // namespace kvs::inline model
