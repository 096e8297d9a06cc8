// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kLlamaAttention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr auto kLlamaFeedForward = pre_norm_mlp(B::kFeedForward);

ExpertLayers read_mixtral(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.width = "intermediate_size", .count_default = 8, .chosen_default = 2, .width_default = 14336});
}

constexpr ExpertRules kMixtralRules{
    .read = read_mixtral, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kBlockSparseExperts};
// GGUF files of Mixtral say "llama".
constexpr ExpertRules kLlamaRules{.read = nullptr, .gguf_normalised = true, .tensors = kBlockSparseExperts};

}  // namespace

constexpr Architecture kLlama{.name = "llama",
                              .hf_class = "LlamaForCausalLM",
                              .hf_base_class = "LlamaModel",
                              .model_type = "llama",
                              .gguf = "llama",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kLlamaAttention,
                              .feed_forward_tensors = kLlamaFeedForward,
                              .gguf_windows = WindowRule::kEveryLayer,  // for Mistral
                              .gguf_interleaved = true,
                              .experts = &kLlamaRules,
                              .keys = {.attention_bias = "attention_bias", .mlp_bias = "mlp_bias"}};

// Llama's arithmetic and names, without biases and with a window. GGUF files of this family say "llama".
constexpr Architecture kMistral{.name = "mistral",
                                .hf_class = "MistralForCausalLM",
                                .hf_base_class = "MistralModel",
                                .model_type = "mistral",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kLlamaAttention,
                                .feed_forward_tensors = kLlamaFeedForward,
                                .windows = WindowRule::kEveryLayer,
                                .gguf_interleaved = true,
                                .keys = {.kv_heads_default = 8, .context_default = 4096 * 32, .window_default = 4096}};

// Mistral with a temperature of queries. GGUF files say "mistral3", older ones "llama".
constexpr Architecture kMinistral3{
    .name = "ministral3",
    .hf_class = "Ministral3ForCausalLM",
    .hf_base_class = "Ministral3Model",
    .model_type = "ministral3",
    .gguf = "mistral3",
    .model_tensors = kModelTensors,
    .attention_tensors = kLlamaAttention,
    .feed_forward_tensors = kLlamaFeedForward,
    .windows = WindowRule::kEveryLayer,
    .gguf_windows = WindowRule::kEveryLayer,
    .gguf_interleaved = true,
    .keys = {.norm_epsilon_default = 1e-5F,
             .query_temperature = true,
             .head_dim_default = 128,
             .kv_heads_default = 8,
             .context_default = 262144},
    .rope = {.gguf_log_multiplier = true,
             .unsaid = R"({"rope_type": "yarn", "rope_theta": 1e6, "factor": 16, "beta_fast": 32, "beta_slow": 1,
                          "original_max_position_embeddings": 16384, "mscale": 1, "mscale_all_dim": 1,
                          "llama_4_scaling_beta": 0.1})"}};

constexpr Architecture kMixtral{
    .name = "mixtral",
    .hf_class = "MixtralForCausalLM",
    .hf_base_class = "MixtralModel",
    .model_type = "mixtral",
    .model_tensors = kModelTensors,
    .attention_tensors = kLlamaAttention,
    .feed_forward_tensors = kLlamaFeedForward,
    .windows = WindowRule::kEveryLayer,
    .gguf_interleaved = true,
    .experts = &kMixtralRules,
    .keys = {.norm_epsilon_default = 1e-5F, .kv_heads_default = 8, .context_default = 4096 * 32},
    .rope = {.theta = 1e6}};

}  // namespace kvs::inline model
