#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace kvs {

enum class NormKind : std::uint8_t { kRms, kLayer };

/// Where queries and keys are normalised before RoPE: nowhere, over each head's channels, or over all heads of a token.
enum class QkNorm : std::uint8_t { kNone, kHead, kRow };

/// What the layers of a family compute, beyond geometry and constants. A row of the architecture table holds it.
struct Arithmetic {
  NormKind norm = NormKind::kRms;  // kLayer: with a bias
  bool input_norms = true;         // of what each of the two blocks reads
  bool output_norms = false;       // of what each block yields, before it joins the residual stream (RMS only)
  QkNorm qk_norm = QkNorm::kNone;  // RMS, with a learned gain
  Activation activation = Activation::kSilu;
  bool gated = true;               // feed-forward: activation(gate) · up; else activation(up)
  bool parallel_residual = false;  // both blocks read the same residual stream
  bool scaled_embeddings = false;  // by sqrt(d_model)
};

}  // namespace kvs
