#include <algorithm>

#include "core/error.h"
#include "model/architecture.h"

namespace kvs::inline model {

namespace {

using enum TensorRole;
using enum TensorAxis;
using B = BiasGroup;

// Projections and norms with the names of most families. `bias`: of q, k, v; `output_bias`: of the output projection.
constexpr TensorSpec kTokens{kEmbedding, "model.embed_tokens", "token_embd", kVocabulary, kModel};
constexpr TensorSpec kLastNorm{kFinalNorm, "model.norm", "output_norm", kModel, kNone};
constexpr TensorSpec kLmHead{kHead, "lm_head", "output", kVocabulary, kModel};
constexpr TensorSpec kInputNorm{kAttentionNorm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel, kNone};
constexpr TensorSpec q_proj(B bias) {
  return {kQuery, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", kQueryRows, kModel, bias};
}
constexpr TensorSpec k_proj(B bias) {
  return {kKey, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", kKeyRows, kModel, bias};
}
constexpr TensorSpec v_proj(B bias) {
  return {kValue, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", kKeyRows, kModel, bias};
}
constexpr TensorSpec o_proj(B bias) {
  return {kOutput, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", kModel, kQueryRows, bias};
}
/// @param rows  kHeadDim: one gain shared by all heads; otherwise one gain per channel of the whole row
constexpr TensorSpec q_norm(TensorAxis rows) {
  return {kQueryNorm, "model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", rows, kNone};
}
constexpr TensorSpec k_norm(TensorAxis rows) {
  return {kKeyNorm, "model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", rows, kNone};
}
/// The second norm of a block pair: Llama's name of the feed-forward block's input norm.
constexpr TensorSpec kMiddleNorm{kFeedForwardNorm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm",
                                 kModel, kNone};
constexpr TensorSpec kAfterAttention{kAttentionOutputNorm, "model.layers.{}.post_attention_layernorm",
                                     "blk.{}.post_attention_norm", kModel, kNone};
constexpr TensorSpec kBeforeFeedForward{kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm",
                                        "blk.{}.ffn_norm", kModel, kNone};
constexpr TensorSpec kAfterFeedForward{kFeedForwardOutputNorm, "model.layers.{}.post_feedforward_layernorm",
                                       "blk.{}.post_ffw_norm", kModel, kNone};
constexpr TensorSpec gate_proj(B bias) {
  return {kGate, "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate", kFeedForward, kModel, bias};
}
constexpr TensorSpec up_proj(B bias) {
  return {kUp, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", kFeedForward, kModel, bias};
}
constexpr TensorSpec down_proj(B bias) {
  return {kDown, "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down", kModel, kFeedForward, bias};
}

constexpr std::array kLlamaTensors{kTokens,
                                   kLastNorm,
                                   kLmHead,
                                   kInputNorm,
                                   q_proj(B::kAttention),
                                   k_proj(B::kAttention),
                                   v_proj(B::kAttention),
                                   o_proj(B::kAttention),
                                   kMiddleNorm,
                                   gate_proj(B::kFeedForward),
                                   up_proj(B::kFeedForward),
                                   down_proj(B::kFeedForward)};

constexpr std::array kQwen2Tensors{kTokens,
                                   kLastNorm,
                                   kLmHead,
                                   kInputNorm,
                                   q_proj(B::kAlways),
                                   k_proj(B::kAlways),
                                   v_proj(B::kAlways),
                                   o_proj(B::kNone),
                                   kMiddleNorm,
                                   gate_proj(B::kNone),
                                   up_proj(B::kNone),
                                   down_proj(B::kNone)};

constexpr std::array kQwen3Tensors{kTokens,
                                   kLastNorm,
                                   kLmHead,
                                   kInputNorm,
                                   q_proj(B::kAttention),
                                   k_proj(B::kAttention),
                                   v_proj(B::kAttention),
                                   q_norm(kHeadDim),
                                   k_norm(kHeadDim),
                                   o_proj(B::kAttention),
                                   kMiddleNorm,
                                   gate_proj(B::kNone),
                                   up_proj(B::kNone),
                                   down_proj(B::kNone)};

constexpr std::array kGemma2Tensors{kTokens,
                                    kLastNorm,
                                    kLmHead,
                                    kInputNorm,
                                    q_proj(B::kAttention),
                                    k_proj(B::kAttention),
                                    v_proj(B::kAttention),
                                    o_proj(B::kAttention),
                                    kAfterAttention,
                                    kBeforeFeedForward,
                                    gate_proj(B::kNone),
                                    up_proj(B::kNone),
                                    down_proj(B::kNone),
                                    kAfterFeedForward};

constexpr std::array kGemma3Tensors{kTokens,
                                    kLastNorm,
                                    kLmHead,
                                    kInputNorm,
                                    q_proj(B::kAttention),
                                    k_proj(B::kAttention),
                                    v_proj(B::kAttention),
                                    q_norm(kHeadDim),
                                    k_norm(kHeadDim),
                                    o_proj(B::kAttention),
                                    kAfterAttention,
                                    kBeforeFeedForward,
                                    gate_proj(B::kNone),
                                    up_proj(B::kNone),
                                    down_proj(B::kNone),
                                    kAfterFeedForward};

constexpr std::string_view kPhi3Qkv = "model.layers.{}.self_attn.qkv_proj",
                           kPhi3GateUp = "model.layers.{}.mlp.gate_up_proj";
constexpr std::array kPhi3Tensors{kTokens,
                                  kLastNorm,
                                  kLmHead,
                                  kInputNorm,
                                  TensorSpec{kQuery, kPhi3Qkv, "blk.{}.attn_qkv", kQueryRows, kModel},
                                  TensorSpec{kKey, kPhi3Qkv, "blk.{}.attn_qkv", kKeyRows, kModel},
                                  TensorSpec{kValue, kPhi3Qkv, "blk.{}.attn_qkv", kKeyRows, kModel},
                                  o_proj(B::kNone),
                                  kMiddleNorm,
                                  TensorSpec{kGate, kPhi3GateUp, "blk.{}.ffn_up", kFeedForward, kModel},
                                  TensorSpec{kUp, kPhi3GateUp, "blk.{}.ffn_up", kFeedForward, kModel},
                                  down_proj(B::kNone)};

constexpr std::array kOlmo2Tensors{kTokens,
                                   kLastNorm,
                                   kLmHead,
                                   q_proj(B::kAttention),
                                   k_proj(B::kAttention),
                                   v_proj(B::kAttention),
                                   q_norm(kQueryRows),
                                   k_norm(kKeyRows),
                                   o_proj(B::kAttention),
                                   kAfterAttention,
                                   gate_proj(B::kNone),
                                   up_proj(B::kNone),
                                   down_proj(B::kNone),
                                   kAfterFeedForward};

constexpr std::string_view kNeoxQkv = "gpt_neox.layers.{}.attention.query_key_value";
constexpr std::array kGptNeoxTensors{
    TensorSpec{kEmbedding, "gpt_neox.embed_in", "token_embd", kVocabulary, kModel},
    TensorSpec{kFinalNorm, "gpt_neox.final_layer_norm", "output_norm", kModel, kNone, B::kAlways},
    TensorSpec{.role = kHead,
               .hf = "embed_out",
               .gguf = "output",
               .rows = kVocabulary,
               .columns = kModel,
               .hf_other = "lm_head"},
    TensorSpec{kAttentionNorm, "gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel, kNone, B::kAlways},
    TensorSpec{kQuery, kNeoxQkv, "blk.{}.attn_qkv", kQueryRows, kModel, B::kAttention},
    TensorSpec{kKey, kNeoxQkv, "blk.{}.attn_qkv", kKeyRows, kModel, B::kAttention},
    TensorSpec{kValue, kNeoxQkv, "blk.{}.attn_qkv", kKeyRows, kModel, B::kAttention},
    TensorSpec{kOutput, "gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output", kModel, kQueryRows, B::kAttention},
    TensorSpec{kFeedForwardNorm, "gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", kModel, kNone,
               B::kAlways},
    TensorSpec{kUp, "gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", kFeedForward, kModel, B::kAlways},
    TensorSpec{kDown, "gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", kModel, kFeedForward, B::kAlways}};

constexpr Arithmetic kGemma2Arithmetic{
    .output_norms = true, .activation = Activation::kGeluTanh, .scaled_embeddings = true};
constexpr Arithmetic kGemma3Arithmetic{
    .output_norms = true, .qk_norm = QkNorm::kHead, .activation = Activation::kGeluTanh, .scaled_embeddings = true};

// Sources: each family's configuration and modelling code in Transformers 5; llama.cpp's converter for GGUF.
constexpr std::array kArchitectures{
    Architecture{.name = "llama",
                 .hf_class = "LlamaForCausalLM",
                 .hf_base_class = "LlamaModel",
                 .model_type = "llama",
                 .gguf = "llama",
                 .tensors = kLlamaTensors,
                 .gguf_windows = WindowRule::kEveryLayer,  // for Mistral
                 .gguf_interleaved = true,
                 .keys = {.attention_bias = "attention_bias", .mlp_bias = "mlp_bias"}},
    // Llama's arithmetic and names, without biases and with a window. GGUF files of this family say "llama".
    Architecture{.name = "mistral",
                 .hf_class = "MistralForCausalLM",
                 .hf_base_class = "MistralModel",
                 .model_type = "mistral",
                 .tensors = kLlamaTensors,
                 .windows = WindowRule::kEveryLayer,
                 .gguf_interleaved = true,
                 .keys = {.kv_heads_default = 8, .context_default = 4096 * 32, .window_default = 4096}},
    Architecture{.name = "qwen2",
                 .hf_class = "Qwen2ForCausalLM",
                 .hf_base_class = "Qwen2Model",
                 .model_type = "qwen2",
                 .gguf = "qwen2",
                 .tensors = kQwen2Tensors,
                 .windows = WindowRule::kUpperLayers,
                 .keys = {.kv_heads_default = 32, .context_default = 32768, .window_default = 4096}},
    Architecture{.name = "qwen3",
                 .hf_class = "Qwen3ForCausalLM",
                 .hf_base_class = "Qwen3Model",
                 .model_type = "qwen3",
                 .gguf = "qwen3",
                 .tensors = kQwen3Tensors,
                 .arithmetic = {.qk_norm = QkNorm::kHead},
                 .windows = WindowRule::kUpperLayers,
                 .keys = {.attention_bias = "attention_bias",
                          .head_dim_default = 128,
                          .kv_heads_default = 32,
                          .context_default = 32768,
                          .window_default = 4096}},
    Architecture{.name = "gemma2",
                 .hf_class = "Gemma2ForCausalLM",
                 .hf_base_class = "Gemma2Model",
                 .model_type = "gemma2",
                 .gguf = "gemma2",
                 .tensors = kGemma2Tensors,
                 .arithmetic = kGemma2Arithmetic,
                 .windows = WindowRule::kPattern,
                 .gguf_windows = WindowRule::kPattern,
                 .window_period = 2,
                 .gguf_window_default = 4096,
                 .hf_norms_less_one = true,
                 .gguf_wide_scale_layers = 46,
                 .keys = {.activation = "hidden_activation",
                          .attention_bias = "attention_bias",
                          .attention_scalar = "query_pre_attn_scalar",
                          .head_dim_default = 256,
                          .kv_heads_default = 4,
                          .context_default = 8192,
                          .window_default = 4096,
                          .tied_head_default = true,
                          .attention_softcap = "attn_logit_softcapping",
                          .logit_softcap = "final_logit_softcapping",
                          .attention_softcap_default = 50,
                          .logit_softcap_default = 30}},
    Architecture{.name = "gemma3",
                 .hf_class = "Gemma3ForCausalLM",
                 .hf_base_class = "Gemma3TextModel",
                 .model_type = "gemma3_text",
                 .gguf = "gemma3",
                 .tensors = kGemma3Tensors,
                 .arithmetic = kGemma3Arithmetic,
                 .windows = WindowRule::kPattern,
                 .gguf_windows = WindowRule::kPattern,
                 .window_period = 6,
                 .hf_norms_less_one = true,
                 .gguf_wide_scale_layers = 62,
                 .keys = {.activation = "hidden_activation",
                          .attention_bias = "attention_bias",
                          .window_pattern = "sliding_window_pattern",
                          .attention_scalar = "query_pre_attn_scalar",
                          .head_dim_default = 256,
                          .kv_heads_default = 4,
                          .context_default = 131072,
                          .window_default = 4096,
                          .tied_head_default = true,
                          .logit_softcap = "final_logit_softcapping"},
                 .rope = {.theta = 1e6, .window_theta = 1e4}},
    Architecture{.name = "phi3",
                 .hf_class = "Phi3ForCausalLM",
                 .hf_base_class = "Phi3Model",
                 .model_type = "phi3",
                 .gguf = "phi3",
                 .tensors = kPhi3Tensors,
                 .windows = WindowRule::kEveryLayer,
                 .gguf_windows = WindowRule::kEveryLayer,
                 .keys = {.norm_epsilon_default = 1e-5F, .context_default = 4096},
                 .rope = {.share_key = "partial_rotary_factor", .original_context = 4096, .su_is_longrope = true}},
    Architecture{.name = "olmo2",
                 .hf_class = "Olmo2ForCausalLM",
                 .hf_base_class = "Olmo2Model",
                 .model_type = "olmo2",
                 .gguf = "olmo2",
                 .tensors = kOlmo2Tensors,
                 .arithmetic = {.input_norms = false, .output_norms = true, .qk_norm = QkNorm::kRow},
                 .keys = {.norm_epsilon_default = 1e-5F, .attention_bias = "attention_bias"}},
    Architecture{.name = "gpt_neox",
                 .hf_class = "GPTNeoXForCausalLM",
                 .hf_base_class = "GPTNeoXModel",
                 .model_type = "gpt_neox",
                 .gguf = "gptneox",
                 .tensors = kGptNeoxTensors,
                 .arithmetic = {.norm = NormKind::kLayer,
                                .activation = Activation::kGeluErf,
                                .gated = false,
                                .parallel_residual = true},
                 .hf_heads_interleaved = true,
                 .keys = {.norm_epsilon = "layer_norm_eps",
                          .norm_epsilon_default = 1e-5F,
                          .kv_heads = "",
                          .attention_bias = "attention_bias",
                          .attention_bias_default = true,
                          .parallel_residual = "use_parallel_residual"},
                 .rope = {.theta_key = "rotary_emb_base", .share_key = "rotary_pct", .share = 0.25}},
};

const Architecture& find_architecture(std::string_view Architecture::*field, std::string_view wanted,
                                      std::string_view where) {
  std::string supported;
  for (const Architecture& row : kArchitectures) {
    if ((row.*field).empty()) continue;
    if (row.*field == wanted) return row;
    supported += (supported.empty() ? "" : ", ") + std::string(row.*field);
  }
  throw Error(ErrorCode::kUnsupported, where,
              "found architecture \"" + std::string(wanted.substr(0, 80)) + "\", supported are: " + supported);
}

}  // namespace

const Architecture& architecture_of_hf_class(std::string_view hf_class, std::string_view where) {
  for (const Architecture& row : kArchitectures) {
    if (hf_class == row.hf_base_class) return row;
  }
  return find_architecture(&Architecture::hf_class, hf_class, where);
}

const Architecture& architecture_of_model_type(std::string_view model_type, std::string_view where) {
  return find_architecture(&Architecture::model_type, model_type, where);
}

const Architecture* find_model_type(std::string_view model_type) noexcept {
  const auto* row = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return row == kArchitectures.end() ? nullptr : row;
}

const Architecture& architecture_of_gguf(std::string_view gguf, std::string_view where) {
  return find_architecture(&Architecture::gguf, gguf, where);
}

std::string with_layer(std::string_view name, std::size_t layer) {
  const std::size_t at = name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + std::to_string(layer) + std::string(name.substr(at + 2));
}

}  // namespace kvs::inline model
