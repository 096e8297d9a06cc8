// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "caches/token_rows.h"

namespace kvs::inline calibrate {

/// EliteKV's changes to one layer.
struct EliteLayer {
  std::size_t layer = 0;
  std::vector<std::vector<std::size_t>> elite;  // [kv_head][pick]: chunks that stay rotated, equally many in every head

  /// Low-rank factors of the other channels, or empty: latent = down · x. up · latent gives for each KV head its
  /// channels that are not elite, ascending, then all channels of the values.
  std::size_t rank = 0;                     // d_ckv; 0: keys and values are stored in full
  std::vector<float> down, up;              // [rank, d_model], [rows, rank]
  std::vector<float> key_rows;              // W_k: [kv_heads · head_dim, d_model]
  std::vector<float> key_bias, value_bias;  // [kv_heads · head_dim] or empty; not part of the factors
  /// Replacement for W_q [query_heads · head_dim, d_model] and its bias; empty: the model's own queries.
  std::vector<float> query_rows, query_bias;
  std::vector<float> output;  // with factors: square matrix that multiplies the attention's output; empty: none
};

struct EliteLayerShape {
  std::size_t query_heads = 0, kv_heads = 0, head_dim = 0;
  std::size_t chunks = 0;  // rotated channels of a head / 2
  std::size_t d_model = 0;
  float rope_factor = 1;  // RopeTable::factor
};

/// A layer's products in a backend's memory, shared by every sequence.
class EliteProducts;
std::shared_ptr<const EliteProducts> make_elite_products(Backend& backend, const EliteLayer& layer,
                                                         const EliteLayerShape& geometry);

/// EliteKV's cache. For a token it stores the rotated elite rows of all KV heads and the latent: 2rG + d_ckv values. A
/// group of tokens restores keys and values from them, with one product for the past and one for the group. A few
/// tokens attend in the latent space instead. The up factors are absorbed into queries and outputs: all query heads
/// read one row of 2rG + d_ckv values per token as key and as value. YaRN's and LongRoPE's factor is also applied to
/// channels that are not rotated, so that scores keep the temperature of the model's training. Without factors the
/// cache stores keys, rotated only in their elite chunks, and values. Source: EliteKV, sections 3.1 (partial RoPE) and
/// 3.2 (J-LRD); DeepSeek-V2 (2024), arXiv:2405.04434, section 2.1.2 (absorption).
std::unique_ptr<LayerCache> make_elitekv_cache(std::shared_ptr<const EliteProducts> products,
                                               const KvTypes& types = {});

}  // namespace kvs::inline calibrate
