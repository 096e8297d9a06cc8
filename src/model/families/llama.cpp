#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kLlamaAttention = join(std::array{kInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kAttention)});
constexpr auto kLlamaFeedForward = join(std::array{kMiddleNorm}, gated_mlp(B::kFeedForward));

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

}  // namespace kvs::inline model
