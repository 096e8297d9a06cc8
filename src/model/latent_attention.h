// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "caches/layer_cache.h"
#include "model/model.h"
#include "model/scratch.h"
#include "model/token_index.h"

namespace kvs::inline model {

/// The projections of latent attention in its absorbed form (LatentConfig). The scores q_nope · (W_k c) of a head and a
/// latent c are (W_kᵀ q_nope) · c, and W_v applies to the weighted sum of latents. All heads attend to one row of each
/// token, and a cache holds nothing else. Cost of a token in a head: rank · (plain_dim + value_dim) multiply-adds, and
/// 2 · head_dim for each token that it reads.
class LatentAttention {
 public:
  explicit LatentAttention(Backend& backend)
      : backend_(&backend),
        latents_(backend),
        narrow_(backend),
        queries_(backend),
        columns_(backend),
        head_(backend),
        mapped_(backend),
        values_(backend),
        index_(backend) {}

  /// Writes q, k and v before RoPE: rows [shared key | latent]. v equals k. x: [member · token, d_model].
  void project(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
               const LayerStates& states);
  /// Returns the positions that each token reads (TokenIndex::choose) in a layer with an index of its own.
  std::vector<std::int32_t> choose(const Operand& x, const LatentWeights& weights, const LatentConfig& config,
                                   const LayerStates& states, std::vector<float>* past, bool moves);
  /// Returns the heads' values of attended rows, the input of the output projection: [row, H · value_dim]. The channels
  /// of the shared key are left out. attended: [row, H · head_dim].
  Operand values(const Operand& attended, const LatentWeights& weights, const AttentionConfig& config);

 private:
  void project_row(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
                   const LayerStates& states);
  void project_queries(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
                       const BackendView<float, 4>& q);
  Operand query_input(const Operand& x, const LatentWeights& weights);
  BackendView<float, 2> plain_and_rotated(const Operand& x, const LatentWeights& weights);

  Backend* backend_;
  Scratch latents_;  // f32 [row, rank or query_rank]
  Scratch narrow_;   // operand, the queries' latent
  Scratch queries_;  // f32 [row, H · (plain_dim + shared key)]
  Scratch columns_;  // f32 [row, plain_dim]
  Scratch head_;     // operand [row, plain_dim or rank]: one head's
  Scratch mapped_;   // f32 [row, rank or value_dim]
  Scratch values_;   // operand [row, H · value_dim]
  TokenIndex index_;
};

}  // namespace kvs::inline model
