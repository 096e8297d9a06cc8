// SPDX-License-Identifier: Apache-2.0
#include "model/recurrent_block.h"

namespace kvs::inline model {

/// Mamba-2. projected: values (x), keys (B), queries (C), gate, steps.
/// Source: Dao and Gu (2024), arXiv:2405.21060.
Operand RecurrentBlock::mix_mamba2(const Piece& piece, const BackendView<float, 2>& projected) {
  const RecurrenceConfig& config = piece.config;
  const std::size_t keys = config.key_rows(), values = config.value_rows(), heads = config.value_heads,
                    gate_column = config.channels();
  const BackendView<float, 2> convolved = convolve(piece, {projected, 0, gate_column}, {}, true);
  const BackendView<float, 2> mixed = mixed_.matrix(piece.x.rows, values);
  backend_->recur({.queries = {convolved, values + keys, keys},
                   .keys = {convolved, values, keys},
                   .values = {convolved, 0, values},
                   .steps = {projected, gate_column + values, heads},
                   .strengths = {},
                   .members = piece.members,
                   .key_heads = config.key_heads,
                   .value_heads = heads,
                   .decay = piece.weights.decay.view(),
                   .step_bias = piece.weights.step_bias.view(),
                   .skip = piece.weights.skip.view(),
                   .least_step = config.least_step,
                   .most_step = config.most_step,
                   .state = piece.state.memory.view()},
                  mixed);
  return gate(piece, mixed, {projected, gate_column, values});
}

}  // namespace kvs::inline model
