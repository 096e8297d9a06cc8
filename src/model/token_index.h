// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caches/layer_cache.h"
#include "model/model.h"
#include "model/scratch.h"

namespace kvs::inline model {

/// Refuses a layer's cache that drops or codes tokens, for a text in which the index chooses the tokens that are read.
/// @param tokens  of the text;  @param where  the cache or the model, in the message
/// @throws Error kUnsupported
void refuse_dropped_tokens(const TokenIndexConfig& index, const LayerCache& cache, std::size_t tokens,
                           const std::string& where);

/// The index of a latent attention chooses the tokens that each query reads: those s ≤ t with the largest Σ_h w_h(x_t)
/// · max(0, q_h(t) · k(s)). Queries and keys of the index are projections of their own, rotated in their first
/// channels, and keys are normalised. Source: DeepSeek-V3.2 (2025), arXiv:2512.02556, section 2.1. Cost of a token:
/// heads · dim multiply-adds for each earlier token.
class TokenIndex {
 public:
  explicit TokenIndex(Backend& backend)
      : backend_(&backend),
        keys_(backend),
        projected_(backend),
        queries_(backend),
        none_(backend),
        weights_(backend),
        products_(backend) {}

  struct Input {
    const Operand& x;       // [member · token, d_model]
    const Operand& latent;  // of queries: [member · token, query_rank]
    const TokenIndexWeights& weights;
    const TokenIndexConfig& config;
    const LayerStates& states;
    std::vector<float>* past = nullptr;  // keys of the earlier tokens, [token, dim]; nullptr: there are none
    bool moves = false;                  // true: the new keys are appended to `past`
  };

  /// Returns the positions that each token reads, ascending, then −1: [member · token, chosen]. Empty if every token
  /// reads all, as in a text of at most `chosen` tokens.
  std::vector<std::int32_t> choose(const Input& input);

 private:
  std::vector<float> make_keys(const Input& input);
  BackendView<float, 4> make_queries(const Input& input);
  void choose_for_member(const Input& input, std::size_t member, const std::vector<float>& keys,
                         const BackendView<float, 4>& q, std::span<const float> weights,
                         std::span<std::int32_t> chosen);

  Backend* backend_;
  Scratch keys_;       // f32 [member · token, dim]
  Scratch projected_;  // f32 [member · token, heads · dim]
  Scratch queries_;    // f32 [member, head, token, dim]
  Scratch none_;
  Scratch weights_;   // f32 [member · token, head]
  Scratch products_;  // f32 [token of a block, position]
};

}  // namespace kvs::inline model
