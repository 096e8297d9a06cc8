// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/recurrence.h"
#include "model/families/tensors.h"
#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::array kNemotronModel{TensorSpec{kEmbedding, "backbone.embeddings", "token_embd", kVocabulary, kModel},
                                    TensorSpec{kFinalNorm, "backbone.norm_f", "output_norm", kModel, kNone}, kLmHead};
constexpr TensorSpec kMixerInputNorm{kAttentionNorm, "backbone.layers.{}.norm", "blk.{}.attn_norm", kModel, kNone};
constexpr TensorSpec kNetworkInputNorm{kFeedForwardNorm, "backbone.layers.{}.norm", "blk.{}.attn_norm", kModel, kNone};
constexpr std::array kNemotronAttention{
    kMixerInputNorm, TensorSpec{kQuery, "backbone.layers.{}.mixer.q_proj", "blk.{}.attn_q", kQueryRows, kModel},
    TensorSpec{kKey, "backbone.layers.{}.mixer.k_proj", "blk.{}.attn_k", kKeyRows, kModel},
    TensorSpec{kValue, "backbone.layers.{}.mixer.v_proj", "blk.{}.attn_v", kKeyRows, kModel},
    TensorSpec{kOutput, "backbone.layers.{}.mixer.o_proj", "blk.{}.attn_output", kModel, kQueryRows}};
constexpr std::array kNemotronFeedForward{kNetworkInputNorm,
                                          TensorSpec{kUp, "backbone.layers.{}.mixer.up_proj", "blk.{}.ffn_up",
                                                     tensors::kFeedForward, kModel, B::kFeedForward},
                                          TensorSpec{kDown, "backbone.layers.{}.mixer.down_proj", "blk.{}.ffn_down",
                                                     kModel, tensors::kFeedForward, B::kFeedForward}};
constexpr std::array kNemotronExperts{kNetworkInputNorm,
                                      router("backbone.layers.{}.mixer.gate"),
                                      router_bias("backbone.layers.{}.mixer.gate.e_score_correction_bias"),
                                      TensorSpec{kLatentIn, "backbone.layers.{}.mixer.fc1_latent_proj",
                                                 "blk.{}.ffn_latent_down", kLatent, kModel, B::kFeedForward},
                                      TensorSpec{kLatentOut, "backbone.layers.{}.mixer.fc2_latent_proj",
                                                 "blk.{}.ffn_latent_up", kModel, kLatent, B::kFeedForward},
                                      TensorSpec{kSharedUp, "backbone.layers.{}.mixer.shared_experts.up_proj",
                                                 "blk.{}.ffn_up_shexp", kSharedWidth, kModel, B::kFeedForward},
                                      TensorSpec{kSharedDown, "backbone.layers.{}.mixer.shared_experts.down_proj",
                                                 "blk.{}.ffn_down_shexp", kModel, kSharedWidth, B::kFeedForward},
                                      TensorSpec{kExpertUp, "backbone.layers.{}.mixer.experts.{}.up_proj",
                                                 "blk.{}.ffn_up_exps", kExpertWidth, kExpertModel},
                                      TensorSpec{kExpertDown, "backbone.layers.{}.mixer.experts.{}.down_proj",
                                                 "blk.{}.ffn_down_exps", kExpertModel, kExpertWidth}};
constexpr auto kNemotronRecurrence =
    join(std::array{kMixerInputNorm}, mamba2({.input = "backbone.layers.{}.mixer.in_proj",
                                              .taps = "backbone.layers.{}.mixer.conv1d",
                                              .decay = "backbone.layers.{}.mixer.A_log",
                                              .step_bias = "backbone.layers.{}.mixer.dt_bias",
                                              .skip = "backbone.layers.{}.mixer.D",
                                              .norm = "backbone.layers.{}.mixer.norm",
                                              .output = "backbone.layers.{}.mixer.out_proj"}));

constexpr float kLeastStep = 0.001F;  // of Mamba-2, if no time_step_min is stated

enum class NemotronKind : std::uint8_t { kMamba, kAttention, kMlp, kMoe };

/// Reads the kind of each layer: layer_types, layers_block_type, or hybrid_override_pattern, a letter for each layer.
std::vector<NemotronKind> nemotron_kinds(const JsonCursor& root, std::size_t layers) {
  using enum NemotronKind;
  constexpr std::string_view kPattern = "hybrid_override_pattern", kLetters = "M*-E";
  const std::string_view types = root.has("layer_types") ? "layer_types" : "layers_block_type";
  static constexpr std::array<std::string_view, 6> kNames{"linear_attention", "mamba", "full_attention",
                                                          "attention",        "mlp",   "moe"};
  static constexpr std::array kOfNames{kMamba, kMamba, kAttention, kAttention, kMlp, kMoe};
  std::vector<NemotronKind> kinds;
  for (const std::size_t name : read_layer_types(root, layers, kNames, types)) kinds.push_back(kOfNames[name]);
  if (!kinds.empty()) return kinds;
  const JsonCursor pattern = root.at(kPattern);
  const std::string& letters = pattern.string();
  if (letters.size() != layers || letters.find_first_not_of(kLetters) != std::string::npos)
    pattern.fail("one of M, *, - and E for each of " + std::to_string(layers) + " layers");
  for (const char letter : letters) kinds.push_back(static_cast<NemotronKind>(kLetters.find(letter)));
  return kinds;
}

ExpertLayers read_nemotron_experts(const JsonCursor& root, std::size_t layers) {
  const std::vector<NemotronKind> kinds = nemotron_kinds(root, layers);
  if (std::ranges::find(kinds, NemotronKind::kMoe) == kinds.end()) return {};
  ExpertLayers all = read_experts(root, layers,
                                  {.count = {"n_routed_experts", "num_local_experts"},
                                   .shared_width = "moe_shared_expert_intermediate_size",
                                   .normalised = "norm_topk_prob",
                                   .groups = true,
                                   .normalised_default = true,
                                   .scores = ExpertsConfig::Scores::kSigmoid,
                                   .count_default = 8,
                                   .chosen_default = 2,
                                   .width_default = 7688,
                                   .shared_width_default = 7688});
  constexpr std::string_view kLatentSize = "moe_latent_size";
  if (root.has(kLatentSize)) all.experts.latent = hf_count(root, kLatentSize, kMaxWidth);
  for (std::size_t layer = 0; layer < layers; ++layer) all.sparse[layer] = kinds[layer] == NemotronKind::kMoe;
  return all;
}

/// Returns the name of a key in the configs of other families with Mamba-2, which holds in Transformers, or its own.
std::string_view key_of_mamba(const JsonCursor& root, std::string_view other, std::string_view own) {
  return root.has(other) ? other : own;
}

/// Leaves each layer its one block. As Transformers' pass over several tokens, steps are at least time_step_min.
void read_nemotron(const JsonCursor& root, ParsedConfig& parsed) {
  check_mixer_activation(root, "mamba_hidden_act");
  std::vector<LayerConfig>& layers = parsed.config.layer;
  RecurrenceConfig block = read_mamba2(root, {.heads = "mamba_num_heads",
                                              .head_dim = "mamba_head_dim",
                                              .groups = key_of_mamba(root, "mamba_n_groups", "n_groups"),
                                              .state = "ssm_state_size",
                                              .kernel = key_of_mamba(root, "mamba_d_conv", "conv_kernel"),
                                              .head_dim_default = 64,
                                              .groups_default = 8,
                                              .state_default = 128});
  const std::string_view least_step = key_of_mamba(root, "mamba_dt_min", "time_step_min");
  block.least_step = static_cast<float>(hf_positive(root, least_step, double{kLeastStep}));
  parsed.convolution_bias = hf_switch(root, "mamba_conv_bias", parsed.convolution_bias);
  const std::vector<NemotronKind> kinds = nemotron_kinds(root, layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const NemotronKind kind = kinds[layer];
    if (kind != NemotronKind::kAttention) layers[layer].attention = {};
    if (kind == NemotronKind::kMamba) layers[layer].recurrence = block;
    if (kind == NemotronKind::kMamba || kind == NemotronKind::kAttention) layers[layer].feed_forward = {};
  }
}

/// Layers with neither heads nor a feed-forward width have Mamba-2. A GGUF lacks time_step_min.
void read_gguf_nemotron(const GgufKeys& keys, ParsedConfig& parsed) {
  constexpr std::string_view kLatentSize = "moe_latent_size";
  std::optional<RecurrenceConfig> block;
  for (std::size_t layer = 0; layer < parsed.config.layers(); ++layer) {
    LayerConfig& each = parsed.config.layer[layer];
    ExpertsConfig& experts = each.feed_forward.experts;
    if (each.feed_forward.is_sparse() && keys.nonzero(kLatentSize)) experts.latent = keys.count(kLatentSize, kMaxWidth);
    if (each.has_attention() || each.has_feed_forward()) continue;
    if (!block) block = read_gguf_mamba2(keys, with_number("blk.{}.ssm_norm.weight", layer));
    each.recurrence = *block;
    each.recurrence.least_step = kLeastStep;
  }
}

constexpr std::array<std::string_view, 40> kNemotronKeys{"attention_bias",  // without effect in Transformers
                                                         "chunk_size",
                                                         "conv_kernel",
                                                         "expand",
                                                         "hidden_dropout",
                                                         "hybrid_override_pattern",
                                                         "layers_block_type",
                                                         "mamba_head_dim",
                                                         "mamba_hidden_act",
                                                         "mamba_num_heads",
                                                         "mamba_ssm_cache_dtype",
                                                         "moe_latent_size",
                                                         "moe_shared_expert_intermediate_size",
                                                         "moe_shared_expert_overlap",
                                                         "mtp_hybrid_override_pattern",
                                                         "mtp_layers_block_type",
                                                         "n_groups",
                                                         "num_logits_to_keep",
                                                         "rescale_prenorm_residual",
                                                         "residual_in_fp32",
                                                         "ssm_state_size",
                                                         "time_step_floor",
                                                         "time_step_limit",
                                                         "time_step_max",
                                                         "time_step_min",
                                                         "use_mamba_kernels",
                                                         "keep_mtp_layers",
                                                         "mamba_chunk_size",
                                                         "mamba_conv_bias",
                                                         "mamba_d_conv",
                                                         "mamba_dt_init_floor",
                                                         "mamba_dt_limit",
                                                         "mamba_dt_max",
                                                         "mamba_dt_min",
                                                         "mamba_expand",
                                                         "mamba_n_groups",
                                                         "mamba_num_groups",
                                                         "moe_router_dtype",
                                                         "norm_eps",
                                                         "rope_theta"};
constexpr ExpertRules kNemotronExpertRules{.read = read_nemotron_experts,
                                           .keys = kExpertKeyNames,
                                           .tensors = kNemotronExperts,
                                           .gguf_scores = ExpertsConfig::Scores::kSigmoid};
constexpr RecurrenceRules kNemotronRules{.read = read_nemotron,
                                         .keys = kNemotronKeys,
                                         .tensors = kNemotronRecurrence,
                                         .read_gguf = read_gguf_nemotron,
                                         .single_blocks = true};

}  // namespace

constexpr Architecture kNemotronH{.name = "nemotron_h",
                                  .hf_class = "NemotronHForCausalLM",
                                  .hf_base_class = "NemotronHModel",
                                  .model_type = "nemotron_h",
                                  .gguf = "nemotron_h",
                                  .gguf_other = "nemotron_h_moe",
                                  .model_tensors = kNemotronModel,
                                  .attention_tensors = kNemotronAttention,
                                  .feed_forward_tensors = kNemotronFeedForward,
                                  .arithmetic = {.activation = Activation::kReluSquared, .gated = false},
                                  .unrotated = UnrotatedRule::kFullLayers,
                                  .experts = &kNemotronExpertRules,
                                  .recurrence = &kNemotronRules,
                                  .keys = {.norm_epsilon = "layer_norm_epsilon",
                                           .norm_epsilon_default = 1e-5F,
                                           .activation = "mlp_hidden_act",
                                           .mlp_bias = "mlp_bias",
                                           .convolution_bias = "use_conv_bias",
                                           .convolution_bias_default = true,
                                           .d_ff_default = 21504,
                                           .head_dim_default = 128,
                                           .kv_heads_default = 8,
                                           .context_default = 4096}};

}  // namespace kvs::inline model
