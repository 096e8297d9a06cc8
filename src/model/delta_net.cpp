// SPDX-License-Identifier: Apache-2.0
#include "model/recurrent_block.h"

namespace kvs::inline model {

/// Gated DeltaNet. projected: queries, keys, values, gate, strengths, steps.
/// Source: Yang et al. (2024), arXiv:2412.06464.
Operand RecurrentBlock::mix_delta_net(const Piece& piece, const BackendView<float, 2>& projected) {
  const RecurrenceConfig& config = piece.config;
  const std::size_t keys = config.key_rows(), values = config.value_rows(), heads = config.value_heads,
                    gate_column = config.channels();
  const BackendView<float, 2> convolved = convolve(piece, {projected, 0, gate_column}, {}, true);
  const BackendView<float, 2> mixed = mixed_.matrix(piece.x.rows, values);
  backend_->recur({.queries = {convolved, 0, keys},
                   .keys = {convolved, keys, keys},
                   .values = {convolved, 2 * keys, values},
                   .steps = {projected, gate_column + values + heads, heads},
                   .strengths = {projected, gate_column + values, heads},
                   .members = piece.members,
                   .key_heads = config.key_heads,
                   .value_heads = heads,
                   .tiled = config.tiled_heads,
                   .decay = piece.weights.decay.view(),
                   .step_bias = piece.weights.step_bias.view(),
                   .unit_keys = true,
                   .state = piece.state.memory.view()},
                  mixed);
  return gate(piece, mixed, {projected, gate_column, values});
}

}  // namespace kvs::inline model
