// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/latent.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kMistral4Mlp = pre_norm_mlp(B::kNone);
constexpr auto kMistral4ExpertTensors = join(kMlpExperts, shared_experts(B::kNone));

ExpertLayers read_mistral4_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"n_routed_experts", "num_local_experts"},
                       .normalised = "norm_topk_prob",
                       .shared_count = "n_shared_experts",
                       .groups = true,
                       .first = "first_k_dense_replace",
                       .shared_count_default = 1,
                       .normalised_default = true,
                       .count_default = 128,
                       .chosen_default = 4,
                       .width_default = 2048});
}

/// In Transformers the share of a head that rotates is one of head_dim.
void read_mistral4_layers(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kHeadDim = "head_dim";
  read_latent_attention(root, config, {.rank = 256, .query_rank = 1024, .plain_dim = 64});
  const AttentionConfig& attention = config.layer.front().attention;
  const std::size_t head = attention.latent.plain_dim + attention.shared_key_dim();
  if (root.has(kHeadDim) && hf_count(root, kHeadDim, kMaxWidth) != head)
    root.at(kHeadDim).fail(std::to_string(head) + ", the sum of qk_nope_head_dim and qk_rope_head_dim");
}

constexpr ExpertRules kMistral4Rules{
    .read = read_mistral4_experts, .keys = kExpertKeyNames, .tensors = kMistral4ExpertTensors};
constexpr LayerRules kMistral4Layers{
    .read = read_mistral4_layers, .keys = kLatentKeyNames, .read_gguf = read_gguf_latent_attention};

}  // namespace

constexpr Architecture kMistral4{.name = "mistral4",
                                 .hf_class = "Mistral4ForCausalLM",
                                 .hf_base_class = "Mistral4Model",
                                 .model_type = "mistral4",
                                 .gguf = "mistral4",
                                 .model_tensors = kModelTensors,
                                 .attention_tensors = kLatentAttention,
                                 .feed_forward_tensors = kMistral4Mlp,
                                 .gguf_interleaved = true,
                                 .hf_interleaved = true,
                                 .experts = &kMistral4Rules,
                                 .layers = &kMistral4Layers,
                                 .keys = {.attention_bias = "attention_bias",
                                          .query_temperature = true,
                                          .interleaved = "rope_interleave",
                                          .head_dim = "qk_rope_head_dim",
                                          .head_dim_default = 64,
                                          .context_default = 1048576},
                                 .rope = {.share_key = "partial_rotary_factor",
                                          .gguf_score_multiplier = true,
                                          .unsaid = R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0,
                                              "original_max_position_embeddings": 8192, "beta_fast": 32.0,
                                              "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0,
                                              "llama_4_scaling_beta": 0.1})"}};

}  // namespace kvs::inline model
