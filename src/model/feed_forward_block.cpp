// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/math/distributions/normal.hpp>

#include "model/forward_pass.h"

namespace kvs::inline model {

namespace {

float normal_quantile(float share) {
  return static_cast<float>(boost::math::quantile(boost::math::normal(), double{share}));
}

}  // namespace

void ForwardPass::feed_forward(const ResidualStream& hidden, std::size_t layer) {
  if (!config.layer[layer].has_feed_forward()) return;
  const LayerWeights& weights = model.layer(layer);
  const BackendView<float, 2> residual = as_rows(hidden);
  const std::size_t rows = residual.extent(0);
  const Arithmetic& arithmetic = config.arithmetic;
  for (std::size_t first = 0; first < rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, rows - first);
    const BackendView<float, 2> slab = row_range(residual, first, count);
    const FeedForwardConfig& block = config.layer[layer].feed_forward;
    if (block.experts.beside_dense) {
      feed_forward_beside(slab, layer);
      continue;
    }
    Operand x;
    if (arithmetic.parallel_residual) {
      x = operand_rows(backend, normed.operand(rows, config.d_model), first, count);  // attend() has left it there
    } else {
      x = normed.operand(count, config.d_model);
      normalise(slab, weights.feed_forward_norm, x);
    }
    if (block.is_sparse()) {
      sparse.add(x, x, weights.sparse, block.experts, arithmetic.activation, slab);
      continue;
    }
    const Operand activated = mixed.operand(count, block.d_ff);
    if (block.sparsity > 0)
      backend.sparse_up_projection(x, *weights.mlp.gate_up, arithmetic.activation, normal_quantile(block.sparsity),
                                   activated);
    else
      backend.up_projection(x, *weights.mlp.gate_up, arithmetic.activation, activated);
    add_to_residual(activated, *weights.mlp.down, weights.feed_forward_output_norm, slab);
  }
}

/// residual += norm(norm(dense block) + norm(experts)), each block with a norm of its input; the router has its own.
void ForwardPass::feed_forward_beside(const BackendView<float, 2>& slab, std::size_t layer) {
  const LayerWeights& weights = model.layer(layer);
  const FeedForwardConfig& block = config.layer[layer].feed_forward;
  const std::size_t count = slab.extent(0), width = config.d_model;
  const BackendView<float, 2> both = summed.matrix(2 * count, width), sum = row_range(both, 0, count),
                              experts = row_range(both, count, count);
  backend.clear(both);
  const Operand x = normed.operand(count, width), router_input = routed.operand(count, width);
  normalise(slab, weights.feed_forward_norm, x);
  const Operand activated = mixed.operand(count, block.d_ff);
  backend.up_projection(x, *weights.mlp.gate_up, config.arithmetic.activation, activated);
  add_to_residual(activated, *weights.mlp.down, weights.sparse.dense_output_norm, sum);
  normalise(slab, weights.sparse.input_norm, x);
  normalise(slab, weights.sparse.router_norm, router_input);
  sparse.add(x, router_input, weights.sparse, block.experts, config.arithmetic.activation, experts);
  backend.rms_norm_add(experts, weights.sparse.output_norm.gain.view(), config.norm_epsilon, sum);
  backend.rms_norm_add(sum, weights.feed_forward_output_norm.gain.view(), config.norm_epsilon, slab);
}

/// residual += norm(W (activation(gate residual) ⊙ the layer's own input)). With streams side by side, all but the
/// first grow by it.
void ForwardPass::add_layer_input(const ResidualStream& hidden, std::size_t layer) {
  const LayerInputWeights& weights = model.layer(layer).input;
  const BackendView<float, 2> residual = as_rows(hidden);
  const std::size_t tokens = hidden.tokens(), slab = std::max<std::size_t>(1, kSlabRows / tokens) * tokens;
  for (std::size_t first = 0; first < residual.extent(0); first += slab) {  // whole members
    const BackendView<float, 2> rows = row_range(residual, first, std::min(slab, residual.extent(0) - first));
    const Operand x = normed.operand(rows.extent(0), config.d_model),
                  activated = mixed.operand(rows.extent(0), config.layer_inputs);
    backend.narrow(rows, x);
    backend.up_projection(x, *weights.gate, config.arithmetic.activation, activated);
    backend.multiply(hidden.layer_inputs->view().slice(layer), activated);
    if (hidden.others.empty()) add_to_residual(activated, *weights.output, weights.norm, rows);
    for (const BackendTensor<float, 3>& other : hidden.others) {
      const BackendView<float, 2> stream = other.view().reshape<2>(residual.shape());
      add_to_residual(activated, *weights.output, weights.norm, row_range(stream, first, rows.extent(0)));
    }
  }
}

}  // namespace kvs::inline model
