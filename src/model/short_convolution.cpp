// SPDX-License-Identifier: Apache-2.0
#include "model/recurrent_block.h"

namespace kvs::inline model {

/// The gated short convolution of LFM2. projected: values, their factors, gate.
/// Source: Liquid AI, LFM2 (2025), arXiv:2511.23404.
Operand RecurrentBlock::mix_short_convolution(const Piece& piece, const BackendView<float, 2>& projected) {
  const std::size_t channels = piece.config.channels();
  const BackendView<float, 2> convolved =
      convolve(piece, {projected, 0, channels}, {projected, channels, channels}, false);
  const Operand gated = gated_.operand(piece.x.rows, channels);
  backend_->gate({.x = convolved, .gate = {projected, 2 * channels, channels}, .silu = false}, gated);
  return gated;
}

}  // namespace kvs::inline model
