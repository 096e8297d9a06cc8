// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kOlmoeAttention = pre_norm_attention(B::kAttention, B::kAttention, qk_norms(kQueryRows, kKeyRows));

ExpertLayers read_olmoe(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", "num_local_experts"},
                       .width = "intermediate_size",
                       .normalised = "norm_topk_prob",
                       .count_default = 64,
                       .chosen_default = 8,
                       .width_default = 2048});
}

constexpr ExpertRules kOlmoeRules{.read = read_olmoe, .keys = kExpertKeyNames, .tensors = kMlpExperts};

}  // namespace

constexpr Architecture kOlmoe{.name = "olmoe",
                              .hf_class = "OlmoeForCausalLM",
                              .hf_base_class = "OlmoeModel",
                              .model_type = "olmoe",
                              .gguf = "olmoe",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kOlmoeAttention,
                              .arithmetic = {.qk_norm = QkNorm::kRow},
                              .experts = &kOlmoeRules,
                              .keys = {.norm_epsilon_default = 1e-5F,
                                       .attention_bias = "attention_bias",
                                       .clip = "clip_qkv",
                                       .context_default = 4096}};

}  // namespace kvs::inline model
