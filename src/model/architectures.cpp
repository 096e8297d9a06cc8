#include "core/error.h"
#include "model/architecture.h"

namespace kvs {

namespace {

constexpr std::array<TensorSpec, 12> kLlamaTensors{{
    {TensorRole::kEmbedding, "model.embed_tokens", "token_embd", Axis::kVocabulary, Axis::kModel},
    {TensorRole::kFinalNorm, "model.norm", "output_norm", Axis::kModel, Axis::kNone},
    {TensorRole::kHead, "lm_head", "output", Axis::kVocabulary, Axis::kModel},
    {TensorRole::kAttentionNorm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm", Axis::kModel, Axis::kNone},
    {TensorRole::kQuery, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", Axis::kQueryRows, Axis::kModel,
     BiasGroup::kAttention},
    {TensorRole::kKey, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", Axis::kKeyRows, Axis::kModel,
     BiasGroup::kAttention},
    {TensorRole::kValue, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", Axis::kKeyRows, Axis::kModel,
     BiasGroup::kAttention},
    {TensorRole::kOutput, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", Axis::kModel, Axis::kQueryRows,
     BiasGroup::kAttention},
    {TensorRole::kFeedForwardNorm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", Axis::kModel,
     Axis::kNone},
    {TensorRole::kGate, "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate", Axis::kFeedForward, Axis::kModel,
     BiasGroup::kFeedForward},
    {TensorRole::kUp, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", Axis::kFeedForward, Axis::kModel,
     BiasGroup::kFeedForward},
    {TensorRole::kDown, "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down", Axis::kModel, Axis::kFeedForward,
     BiasGroup::kFeedForward},
}};

// Mistral without a sliding window is Llama's arithmetic and names without biases; its GGUF files say "llama".
constexpr std::array kArchitectures{
    Architecture{"llama", "LlamaForCausalLM", "llama", "llama", kLlamaTensors, true, "attention_bias", "mlp_bias", ""},
    Architecture{"mistral", "MistralForCausalLM", "mistral", "", kLlamaTensors, true, "", "", "sliding_window"},
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
  return find_architecture(&Architecture::hf_class, hf_class, where);
}

const Architecture& architecture_of_model_type(std::string_view model_type, std::string_view where) {
  return find_architecture(&Architecture::model_type, model_type, where);
}

const Architecture& architecture_of_gguf(std::string_view gguf, std::string_view where) {
  return find_architecture(&Architecture::gguf, gguf, where);
}

std::string with_layer(std::string_view name, std::size_t layer) {
  const std::size_t at = name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + std::to_string(layer) + std::string(name.substr(at + 2));
}

}  // namespace kvs
