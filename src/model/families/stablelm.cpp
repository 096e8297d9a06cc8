#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kStableLmAttention =
    join(std::array{kBiasedInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kNone)});
constexpr auto kStableLmFeedForward = join(std::array{kBiasedMiddleNorm}, gated_mlp(B::kNone));

}  // namespace

// Sequential blocks; `use_parallel_residual` and `qk_layernorm` are refused.
constexpr Architecture kStableLm{.name = "stablelm",
                                 .hf_class = "StableLmForCausalLM",
                                 .hf_base_class = "StableLmModel",
                                 .model_type = "stablelm",
                                 .model_tensors = kBiasedModelTensors,
                                 .attention_tensors = kStableLmAttention,
                                 .feed_forward_tensors = kStableLmFeedForward,
                                 .arithmetic = {.norm = NormKind::kLayer},
                                 .keys = {.norm_epsilon = "layer_norm_eps",
                                          .norm_epsilon_default = 1e-5F,
                                          .attention_bias = "use_qkv_bias",
                                          .kv_heads_default = 32,
                                          .context_default = 4096},
                                 .rope = {.share_key = "partial_rotary_factor", .share = 0.25}};

}  // namespace kvs::inline model
