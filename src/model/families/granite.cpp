// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGraniteAttention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr auto kGraniteFeedForward = pre_norm_mlp(B::kFeedForward);

ExpertLayers read_granite(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_local_experts", ""},
                       .width = "intermediate_size",
                       .count_default = 8,
                       .chosen_default = 2,
                       .width_default = 11008});
}

constexpr ExpertRules kGraniteRules{
    .read = read_granite, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kGraniteExperts};

}  // namespace

constexpr Architecture kGranite{
    .name = "granite",
    .hf_class = "GraniteForCausalLM",
    .hf_base_class = "GraniteModel",
    .model_type = "granite",
    .gguf = "granite",
    .model_tensors = kModelTensors,
    .attention_tensors = kGraniteAttention,
    .feed_forward_tensors = kGraniteFeedForward,
    .gguf_interleaved = true,
    .keys = {.attention_bias = "attention_bias", .mlp_bias = "mlp_bias", .multipliers = true}};

constexpr Architecture kGraniteMoe{.name = "granitemoe",
                                   .hf_class = "GraniteMoeForCausalLM",
                                   .hf_base_class = "GraniteMoeModel",
                                   .model_type = "granitemoe",
                                   .gguf = "granitemoe",
                                   .model_tensors = kModelTensors,
                                   .attention_tensors = kGraniteAttention,
                                   .feed_forward_tensors = kGraniteFeedForward,
                                   .gguf_interleaved = true,
                                   .experts = &kGraniteRules,
                                   .keys = {.attention_bias = "attention_bias", .multipliers = true}};

}  // namespace kvs::inline model
