#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kQwen2Attention = join(std::array{kInputNorm}, qkv(B::kAlways), std::array{o_proj(B::kNone)});
constexpr auto kQwen3Attention =
    join(std::array{kInputNorm}, qkv(B::kAttention), qk_norms(kHeadDim, kHeadDim), std::array{o_proj(B::kAttention)});
constexpr auto kQwenFeedForward = join(std::array{kMiddleNorm}, gated_mlp(B::kNone));

}  // namespace

constexpr Architecture kQwen2{.name = "qwen2",
                              .hf_class = "Qwen2ForCausalLM",
                              .hf_base_class = "Qwen2Model",
                              .model_type = "qwen2",
                              .gguf = "qwen2",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kQwen2Attention,
                              .feed_forward_tensors = kQwenFeedForward,
                              .windows = WindowRule::kUpperLayers,
                              .keys = {.kv_heads_default = 32, .context_default = 32768, .window_default = 4096}};

constexpr Architecture kQwen3{.name = "qwen3",
                              .hf_class = "Qwen3ForCausalLM",
                              .hf_base_class = "Qwen3Model",
                              .model_type = "qwen3",
                              .gguf = "qwen3",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kQwen3Attention,
                              .feed_forward_tensors = kQwenFeedForward,
                              .arithmetic = {.qk_norm = QkNorm::kHead},
                              .windows = WindowRule::kUpperLayers,
                              .keys = {.attention_bias = "attention_bias",
                                       .head_dim_default = 128,
                                       .kv_heads_default = 32,
                                       .context_default = 32768,
                                       .window_default = 4096}};

}  // namespace kvs::inline model
