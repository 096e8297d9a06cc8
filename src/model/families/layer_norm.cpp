#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr TensorSpec kBiasedLastNorm{kFinalNorm, "model.norm", "output_norm", kModel, kNone, B::kAlways};
constexpr std::array kStarcoder2Model{kTokens, kBiasedLastNorm, kLmHead};
constexpr TensorSpec kBiasedInputNorm{
    kAttentionNorm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel, kNone, B::kAlways};
constexpr TensorSpec kBiasedMiddleNorm{
    kFeedForwardNorm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", kModel, kNone, B::kAlways};
constexpr auto kStarcoder2Attention =
    join(std::array{kBiasedInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kAttention)});
constexpr std::array kStarcoder2FeedForward{
    kBiasedMiddleNorm,
    TensorSpec{kUp, "model.layers.{}.mlp.c_fc", "blk.{}.ffn_up", kFeedForward, kModel, B::kAttention},
    TensorSpec{kDown, "model.layers.{}.mlp.c_proj", "blk.{}.ffn_down", kModel, kFeedForward, B::kAttention}};
constexpr auto kStableLmAttention =
    join(std::array{kBiasedInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kNone)});
constexpr auto kStableLmFeedForward = join(std::array{kBiasedMiddleNorm}, gated_mlp(B::kNone));

}  // namespace

constexpr Architecture kStarcoder2{
    .name = "starcoder2",
    .hf_class = "Starcoder2ForCausalLM",
    .hf_base_class = "Starcoder2Model",
    .model_type = "starcoder2",
    .model_tensors = kStarcoder2Model,
    .attention_tensors = kStarcoder2Attention,
    .feed_forward_tensors = kStarcoder2FeedForward,
    .arithmetic = {.norm = NormKind::kLayer, .activation = Activation::kGeluTanh, .gated = false},
    .windows = WindowRule::kEveryLayer,
    .keys = {.norm_epsilon = "norm_epsilon",
             .norm_epsilon_default = 1e-5F,
             .attention_bias = "use_bias",
             .attention_bias_default = true,
             .kv_heads_default = 2,
             .context_default = 4096,
             .tied_head_default = true}};

// Sequential blocks; `use_parallel_residual` and `qk_layernorm` are refused.
constexpr Architecture kStableLm{.name = "stablelm",
                                 .hf_class = "StableLmForCausalLM",
                                 .hf_base_class = "StableLmModel",
                                 .model_type = "stablelm",
                                 .model_tensors = kStarcoder2Model,
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
