// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "core/checked.h"
#include "core/error.h"
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/layer_inputs.h"
#include "model/families/tensors.h"
#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr TensorSpec norm(TensorRole role, std::string_view hf, std::string_view gguf) {
  return {role, hf, gguf, kModel, kNone};
}

constexpr auto kGemma4Tensors = join(kModelTensors, kInputs);

constexpr auto kGemma4Attention = join(std::array{kInputNorm}, qkv(B::kAttention), qk_norms(kHeadDim, kHeadDim),
                                       std::array{o_proj(B::kAttention), kAfterAttention});

/// The last steps of a layer.
constexpr std::array kLayerScales{TensorSpec{.role = kLayerScale,
                                             .hf = "model.layers.{}.layer_scalar",
                                             .gguf = "blk.{}.layer_output_scale",
                                             .rows = kOne,
                                             .columns = kNone,
                                             .optional = true,
                                             .hf_ending = ""}};
constexpr auto kGemma4FeedForward = join(std::array{kBeforeFeedForward}, gated_mlp(B::kNone),
                                         std::array{kAfterFeedForward}, kInputOfLayer, kLayerScales);

/// A vector of the router, which Hugging Face files name without an ending.
constexpr TensorSpec router_vector(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows) {
  return {.role = role, .hf = hf, .gguf = gguf, .rows = rows, .columns = kNone, .hf_ending = "", .gguf_ending = ""};
}
constexpr auto kGemma4Router =
    join(kGemma4FeedForward,
         std::array{norm(kDenseOutputNorm, "model.layers.{}.post_feedforward_layernorm_1", "blk.{}.post_ffw_norm_1"),
                    norm(kExpertsInputNorm, "model.layers.{}.pre_feedforward_layernorm_2", "blk.{}.pre_ffw_norm_2"),
                    norm(kExpertsOutputNorm, "model.layers.{}.post_feedforward_layernorm_2", "blk.{}.post_ffw_norm_2"),
                    router("model.layers.{}.router.proj"),
                    router_vector(kRouterNorm, "model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale", kModel),
                    // In GGUF it is a scale of the experts' weights (checkpoints/gguf_weights.cpp).
                    router_vector(kExpertScale, "model.layers.{}.router.per_expert_scale", "", kExperts)});
constexpr auto kGemma4Experts =
    join(kGemma4Router, experts("model.layers.{}.experts.{}.gate_proj", "model.layers.{}.experts.{}.up_proj",
                                "model.layers.{}.experts.{}.down_proj"));

/// Returns a count that may be missing or 0.
std::size_t count_or(const JsonCursor& root, std::string_view key, std::uint64_t most, std::size_t missing) {
  return root.has(key) ? root.at(key).unsigned_integer(most) : missing;
}

constexpr std::array<std::string_view, 4> kExpertKeys{"num_experts", "top_k_experts", "moe_intermediate_size",
                                                      "enable_moe_block"};

ExpertLayers read_gemma4_experts(const JsonCursor& root, std::size_t layers) {
  ExpertLayers all{.experts = {}, .sparse = std::vector<bool>(layers, hf_switch(root, "enable_moe_block", false))};
  if (!hf_switch(root, "enable_moe_block", false)) return all;
  all.experts = {.count = hf_count(root, "num_experts", kMaxWidth),
                 .chosen = hf_count(root, "top_k_experts", kMaxWidth),
                 .d_ff = hf_count(root, "moe_intermediate_size", kMaxWidth),
                 .normalised = true,
                 .beside_dense = true};
  if (all.experts.chosen > all.experts.count)
    root.at("top_k_experts").fail("at most the " + std::to_string(all.experts.count) + " experts");
  return all;
}

constexpr std::array<std::string_view, 9> kLayerKeys{"global_head_dim",
                                                     "num_global_key_value_heads",
                                                     "per_layer_config",
                                                     "attention_k_eq_v",
                                                     "num_kv_shared_layers",
                                                     "use_double_wide_mlp",
                                                     "hidden_size_per_layer_input",
                                                     "vocab_size_per_layer_input",
                                                     "use_bidirectional_attention"};

bool is_full(const LayerConfig& layer) { return layer.attention.window == 0; }

/// Sets the heads of full layers from keys for all of them.
void set_full_heads(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kHeads = "num_global_key_value_heads";
  const std::size_t head_dim = hf_count(root, "global_head_dim", kMaxWidth, 512);
  const bool own_heads = hf_switch(root, "attention_k_eq_v", false) && root.has(kHeads);
  for (LayerConfig& layer : config.layer) {
    if (!is_full(layer)) continue;
    layer.attention.head_dim = head_dim;
    if (own_heads) layer.attention.kv_heads = hf_count(root, kHeads, kMaxHeads);
  }
}

/// Sets the heads of layers that per_layer_config names by their number, with or without leading zeros.
void set_listed_heads(const JsonCursor& list, ModelConfig& config) {
  for (const std::string& name : list.keys()) {
    const JsonCursor own = list.at(name);
    const auto layer = parse_integer<std::size_t>(name);
    if (!layer || *layer >= config.layers()) own.fail("the number of a layer as its key");
    AttentionConfig& attention = config.layer[*layer].attention;
    for (const std::string& key : own.keys()) {
      if (key == "head_dim")
        attention.head_dim = hf_count(own, key, kMaxWidth);
      else if (key == "num_key_value_heads")
        attention.kv_heads = hf_count(own, key, kMaxHeads);
      else
        throw Error(ErrorCode::kUnsupported, own.at(key).place(),
                    "found a key of one layer, supported are: head_dim, num_key_value_heads");
    }
  }
}

void read_shared_rows(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kShared = "num_kv_shared_layers";
  const std::size_t shared = count_or(root, kShared, config.layers(), 0);
  if (!share_kv_layers(shared, config)) root.at(kShared).fail(kSourceMissing);
  if (!hf_switch(root, "use_double_wide_mlp", false)) return;
  for (std::size_t index = config.layers() - shared; index < config.layers(); ++index)
    config.layer[index].feed_forward.d_ff *= 2;
}

void read_gemma4_layers(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kBothWays = "use_bidirectional_attention";  // "vision" concerns images
  if (root.has(kBothWays) && root.at(kBothWays).value() == "all")
    throw Error(ErrorCode::kUnsupported, root.at(kBothWays).place(), "found \"all\", expected a causal decoder");
  config.layer.back().attention.window = 0;  // as in Transformers
  for (LayerConfig& layer : config.layer) layer.attention.scale = 1;
  if (root.has("per_layer_config"))
    set_listed_heads(root.at("per_layer_config"), config);
  else
    set_full_heads(root, config);
  for (LayerConfig& layer : config.layer) {
    complete_geometry(layer.attention, config.d_model, root.place(),
                      {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"});
    layer.attention.one_row = is_full(layer) && hf_switch(root, "attention_k_eq_v", false);
  }
  read_shared_rows(root, config);
  config.layer_inputs = count_or(root, "hidden_size_per_layer_input", kMaxWidth, 256);
  config.layer_input_vocabulary = hf_count(root, "vocab_size_per_layer_input", kMaxVocabularySize, 262144);
}

/// Keys and values come from one row in the layers that have keys but no values.
void read_gguf_layers(const GgufKeys& keys, ModelConfig& config) {
  constexpr std::string_view kWidth = "embedding_length_per_layer_input", kHeadDim = "attention.key_length_swa",
                             kValueDim = "attention.value_length_swa";
  const std::size_t head_dim = keys.count(kHeadDim, kMaxWidth);
  if (keys.count(kValueDim, kMaxWidth) != head_dim || head_dim % 2 != 0)
    keys.fail(ErrorCode::kUnsupported, kHeadDim, "found other than an even number equal to value_length_swa");
  const auto stores = [&](std::string_view name, std::size_t layer) {
    return keys.file().find(with_number(name, layer)) != nullptr;
  };
  for (std::size_t index = 0; index < config.layers(); ++index) {
    LayerConfig& layer = config.layer[index];
    if (!is_full(layer)) layer.attention.head_dim = head_dim;
    layer.attention.scale = 1;
    layer.attention.one_row = stores("blk.{}.attn_k.weight", index) && !stores("blk.{}.attn_v.weight", index);
    layer.feed_forward.experts.beside_dense = layer.feed_forward.is_sparse();
  }
  read_gguf_shared_rows(keys, 0, config);
  config.layer_inputs = keys.has(kWidth) ? keys.unsigned_integer(kWidth, kMaxWidth) : 0;
  const StoredTensor* table = keys.file().find("per_layer_token_embd.weight");
  config.layer_input_vocabulary =
      table == nullptr ? config.vocabulary : std::min<std::size_t>(table->rows(), kMaxVocabularySize);
}

constexpr ExpertRules kGemma4ExpertRules{
    .read = read_gemma4_experts, .gguf_normalised = true, .keys = kExpertKeys, .tensors = kGemma4Experts};
constexpr LayerRules kGemma4LayerRules{
    .read = read_gemma4_layers, .keys = kLayerKeys, .read_gguf_sizes = read_gguf_layers};

}  // namespace

constexpr Architecture kGemma4{.name = "gemma4",
                               .hf_class = "Gemma4ForCausalLM",
                               .hf_base_class = "Gemma4TextModel",
                               .model_type = "gemma4_text",
                               .gguf = "gemma4",
                               .model_tensors = kGemma4Tensors,
                               .attention_tensors = kGemma4Attention,
                               .feed_forward_tensors = kGemma4FeedForward,
                               .arithmetic = {.output_norms = true,
                                              .qk_norm = QkNorm::kHead,
                                              .value_norm = true,
                                              .activation = Activation::kGeluTanh,
                                              .scaled_embeddings = true},
                               .windows = WindowRule::kPattern,
                               .gguf_windows = WindowRule::kPattern,
                               .window_period = 6,
                               .experts = &kGemma4ExpertRules,
                               .layers = &kGemma4LayerRules,
                               .keys = {.activation = "hidden_activation",
                                        .attention_bias = "attention_bias",
                                        .head_dim_default = 256,
                                        .kv_heads_default = 4,
                                        .query_heads_default = 8,
                                        .vocabulary_default = 262144,
                                        .context_default = 131072,
                                        .window_default = 512,
                                        .tied_head_default = true,
                                        .logit_softcap = "final_logit_softcapping"},
                               .rope = {.theta = 1e6, .window_theta = 1e4, .proportional_share = 0.25}};

}  // namespace kvs::inline model
