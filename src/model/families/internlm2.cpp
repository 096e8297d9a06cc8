// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

// Source: the models' own code (modeling_internlm2.py). A fused tensor holds for each KV head the rows of its queries,
// of its key and of its value.
constexpr TensorSpec intern_lm2_part(TensorRole role, std::string_view gguf, TensorAxis rows) {
  return {.role = role,
          .hf = "model.layers.{}.attention.wqkv",
          .gguf = gguf,
          .rows = rows,
          .columns = kModel,
          .bias = B::kAttention,
          .hf_heads = kKvHeads};
}
constexpr std::array kInternLm2Model{TensorSpec{kEmbedding, "model.tok_embeddings", "token_embd", kVocabulary, kModel},
                                     kLastNorm, TensorSpec{kHead, "output", "output", kVocabulary, kModel}};
constexpr std::array kInternLm2Attention{
    TensorSpec{kAttentionNorm, "model.layers.{}.attention_norm", "blk.{}.attn_norm", kModel, kNone},
    intern_lm2_part(kQuery, "blk.{}.attn_q", kQueryRows), intern_lm2_part(kKey, "blk.{}.attn_k", kKeyRows),
    intern_lm2_part(kValue, "blk.{}.attn_v", kKeyRows),
    TensorSpec{kOutput, "model.layers.{}.attention.wo", "blk.{}.attn_output", kModel, kQueryRows, B::kAttention}};
constexpr std::array kInternLm2FeedForward{
    TensorSpec{kFeedForwardNorm, "model.layers.{}.ffn_norm", "blk.{}.ffn_norm", kModel, kNone},
    TensorSpec{kGate, "model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate", kFeedForward, kModel},
    TensorSpec{kUp, "model.layers.{}.feed_forward.w3", "blk.{}.ffn_up", kFeedForward, kModel},
    TensorSpec{kDown, "model.layers.{}.feed_forward.w2", "blk.{}.ffn_down", kModel, kFeedForward}};

}  // namespace

constexpr Architecture kInternLm2{.name = "internlm2",
                                  .hf_class = "InternLM2ForCausalLM",
                                  .hf_base_class = "InternLM2Model",
                                  .model_type = "internlm2",
                                  .gguf = "internlm2",
                                  .model_tensors = kInternLm2Model,
                                  .attention_tensors = kInternLm2Attention,
                                  .feed_forward_tensors = kInternLm2FeedForward,
                                  .gguf_interleaved = true,
                                  .keys = {.attention_bias = "bias", .attention_bias_default = true}};

}  // namespace kvs::inline model
