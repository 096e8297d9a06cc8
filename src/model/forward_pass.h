// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/altup.h"
#include "model/decoder.h"
#include "model/latent_attention.h"
#include "model/laurel.h"
#include "model/recurrent_block.h"
#include "model/scratch.h"
#include "model/sparse_block.h"

namespace kvs::inline model {

/// Maximum number of rows of one product, which bounds the wide activations of a large batch. A GPU needs many rows:
/// the last round of a product's tiles leaves multiprocessors idle, and more rounds make that share smaller.
inline constexpr std::size_t kSlabRows = 4096;

/// Rows [first, first + count) of a matrix.
template <class T>
BackendView<T, 2> row_range(const BackendView<T, 2>& matrix, std::size_t first, std::size_t count) {
  const std::size_t columns = matrix.extent(1);
  return {std::span<T>(matrix.data() + first * columns, count * columns), {count, columns}};
}

/// The tokens of all members: [member · token, d_model].
inline BackendView<float, 2> as_rows(const ResidualStream& hidden) {
  const BackendView<float, 3>& rows = hidden.rows.view();
  return rows.reshape<2>({rows.extent(0) * rows.extent(1), rows.extent(2)});
}

/// The layers of a forward pass with the memory of their activations, which the calls share.
struct ForwardPass {
  explicit ForwardPass(const Model& weights);

  // forward_pass.cpp
  void advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache);
  void run_layer(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache);
  void normalise(BackendView<const float, 2> rows, const NormWeights& norm, const Operand& out);
  void add_to_residual(const Operand& x, const Weight& weight, const NormWeights& norm,
                       const BackendView<float, 2>& residual);
  void keep_last_rows(const ResidualStream& hidden, const BackendView<float, 2>& kept);
  void check_finite(const BackendView<float, 2>& kept, std::size_t members, std::size_t first_layer);

  // attention_block.cpp
  void mix(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache);
  void attend(ResidualStream& hidden, std::size_t layer, const Operand& x, StateHook* hook, Cache* cache);
  void attend_fused(const ResidualStream& hidden, std::size_t layer, const Operand& x, const Operand& attended);
  void attend_stored(ResidualStream& hidden, std::size_t layer, const Operand& x, const Operand& attended,
                     StateHook* hook, Cache* cache);
  void attend_shared(const ResidualStream& hidden, LayerStates& states, const Operand& attended, Cache* cache);
  void replay(const RecordedStates& recorded, std::size_t first, std::size_t count, std::size_t positions,
              Cache& cache);
  LayerStates project_states(const ResidualStream& hidden, std::size_t layer, const Operand& x);
  template <class Use>
  void project(const LayerWeights& weights, const Operand& x, std::size_t members, Use use);
  bool changes_states(std::size_t layer) const;
  void change_states(LayerStates& states, const LayerWeights& weights);
  void set_query_factors(LayerStates& states);
  void norm_heads(const BackendView<float, 4>& states, const NormWeights& norm);
  void set_rotated_norms(LayerStates& states, const LayerWeights& weights) const;
  template <class Input>
  void set_score_options(Input& input, std::size_t layer) const;
  void choose_tokens(ResidualStream& hidden, LayerStates& states, const Operand& x, Cache* cache);
  SharedStates shared_states(const LayerStates& states) const;
  void gate_output(const Operand& x, const Weight& weight, const Operand& attended);

  // feed_forward_block.cpp
  void feed_forward(const ResidualStream& hidden, std::size_t layer);
  void feed_forward_beside(const BackendView<float, 2>& slab, std::size_t layer);
  void add_layer_input(const ResidualStream& hidden, std::size_t layer);

  const Model& model;
  Backend& backend;
  const ModelConfig& config;
  Scratch normed;   // operand [rows, d_model]: the input of qkv, gate_up or the head
  Scratch wide;     // f32 [slab, (H + 2G)·d], or [slab, d_model] before an output norm
  Scratch q, k, v;  // f32, head-major, if a hook, a cache or a norm needs them
  Scratch mixed;    // operand [rows, H·d] or [slab, d_ff]
  Scratch summed;   // f32 [slab, 2 · d_model]: the sum of a dense block and experts, and the experts' part
  Scratch last;     // f32 [layer of the call · member, d_model]: the last token after each layer
  Scratch routed;   // operand [slab, d_model]: the router's input next to a dense block
  std::vector<float> query_factors;  // [token] of the current layer
  SparseBlock sparse;
  RecurrentBlock recurrent;
  LatentAttention latent;
  AltUp altup;
  Laurel laurel;
};

}  // namespace kvs::inline model
