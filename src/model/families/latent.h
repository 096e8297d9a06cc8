// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "model/families/tensors.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

/// Keys of config.json about latent attention.
inline constexpr std::array<std::string_view, 6> kLatentKeyNames{"q_lora_rank",      "kv_lora_rank", "qk_rope_head_dim",
                                                                 "qk_nope_head_dim", "v_head_dim",   "qk_head_dim"};

/// Keys of config.json of families with an index of tokens.
inline constexpr auto kIndexKeyNames =
    tensors::join(kLatentKeyNames,
                  std::array<std::string_view, 7>{"index_topk", "index_head_dim", "index_n_heads", "indexer_types",
                                                  "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset"});

/// A class's sizes for missing keys. Members as in LatentConfig; shared_key_dim: qk_rope_head_dim.
struct LatentDefaults {
  std::size_t rank = 512, query_rank = 1536, plain_dim = 128, shared_key_dim = 64, value_dim = 128;
  TokenIndexConfig index = {};  // its heads, their channels and index_topk; nothing: the family has no index
  bool index_types = false;     // some layers take another layer's choice (indexer_types)
};

/// Gives all layers latent attention. The scores' scale is 1 / sqrt(plain_dim + shared_key_dim), times the square of
/// 0.1 · mscale_all_dim · ln(factor) + 1 where RoPE is scaled.
/// @throws Error kInput with the JSON pointer.
void read_latent_attention(const JsonCursor& root, ModelConfig& config, const LatentDefaults& defaults);

/// Like read_latent_attention(), from GGUF metadata as llama.cpp reads them. The sizes of heads have keys of their own;
/// in files older than the absorbed form they have the keys of other architectures.
/// @throws Error kInput with the key
void read_gguf_latent_attention(const GgufKeys& keys, ModelConfig& config);

}  // namespace kvs::inline model

namespace kvs::tensors {

/// A part of a tensor that holds the heads one after the other.
constexpr TensorSpec by_query_head(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows,
                                   TensorAxis columns) {
  return {.role = role,
          .hf = hf,
          .gguf = gguf,
          .rows = rows,
          .columns = columns,
          .hf_heads = kQueryHeads,
          .gguf_heads = kQueryHeads};
}
/// A tensor of GGUF files alone, [head, row, column].
constexpr TensorSpec of_gguf_heads(TensorRole role, std::string_view gguf, TensorAxis rows, TensorAxis columns) {
  return {.role = role, .hf = "", .gguf = gguf, .rows = rows, .columns = columns, .by_head = kQueryHeads};
}
/// A tensor that a GGUF may lack, such as the bias for the choice of experts: models with and without it have one
/// architecture there.
constexpr TensorSpec optional_in_gguf(TensorSpec spec) {
  spec.gguf_optional = true;
  return spec;
}

inline constexpr std::string_view kQaProj = "model.layers.{}.self_attn.q_a_proj",
                                  kQbProj = "model.layers.{}.self_attn.q_b_proj",
                                  kQProj = "model.layers.{}.self_attn.q_proj",
                                  kKvAProj = "model.layers.{}.self_attn.kv_a_proj_with_mqa",
                                  kKvBProj = "model.layers.{}.self_attn.kv_b_proj";

/// The attention block of DeepSeek-V2 and the families that follow it.
inline constexpr std::array kLatentAttention{
    kInputNorm,
    TensorSpec{kQueryLatent, kQaProj, "blk.{}.attn_q_a", kQueryLatentRank, kModel, BiasGroup::kAttention},
    TensorSpec{kQueryLatentNorm, "model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm", kQueryLatentRank,
               kNone},
    by_query_head(kPlainQuery, kQbProj, "blk.{}.attn_q_b", kPlainQueryRows, kQueryLatentRank),
    by_query_head(kQuery, kQbProj, "blk.{}.attn_q_b", kRotatedQueryRows, kQueryLatentRank),
    by_query_head(kPlainQuery, kQProj, "blk.{}.attn_q", kPlainQueryRows, kModel),
    by_query_head(kQuery, kQProj, "blk.{}.attn_q", kRotatedQueryRows, kModel),
    TensorSpec{kKvLatent, kKvAProj, "blk.{}.attn_kv_a_mqa", kLatentRank, kModel, BiasGroup::kAttention},
    TensorSpec{kKey, kKvAProj, "blk.{}.attn_kv_a_mqa", kSharedKey, kModel, BiasGroup::kAttention},
    TensorSpec{kKvLatentNorm, "model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm", kLatentRank, kNone},
    by_query_head(kLatentKey, kKvBProj, "blk.{}.attn_kv_b", kPlainQueryRows, kLatentRank),
    by_query_head(kLatentValue, kKvBProj, "blk.{}.attn_kv_b", kLatentValueRows, kLatentRank),
    of_gguf_heads(kLatentKeyMap, "blk.{}.attn_k_b", kLatentRows, kPlainDim),
    of_gguf_heads(kLatentValue, "blk.{}.attn_v_b", kLatentValueRows, kLatentRank),
    TensorSpec{kOutput, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", kModel, kLatentValueRows,
               BiasGroup::kAttention}};

/// With an index of tokens.
inline constexpr auto kIndexedAttention =
    join(kLatentAttention, std::array{TensorSpec{kIndexQuery, "model.layers.{}.self_attn.indexer.wq_b",
                                                 "blk.{}.indexer.attn_q_b", kIndexRows, kQueryLatentRank},
                                      TensorSpec{kIndexKey, "model.layers.{}.self_attn.indexer.wk",
                                                 "blk.{}.indexer.attn_k", kIndexDim, kModel},
                                      TensorSpec{kIndexKeyNorm, "model.layers.{}.self_attn.indexer.k_norm",
                                                 "blk.{}.indexer.k_norm", kIndexDim, kNone, BiasGroup::kAlways},
                                      TensorSpec{kIndexWeight, "model.layers.{}.self_attn.indexer.weights_proj",
                                                 "blk.{}.indexer.proj", kIndexHeads, kModel}});

}  // namespace kvs::tensors
