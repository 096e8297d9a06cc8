// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "model/architecture.h"

namespace kvs::inline model {

/// Keys of config.json about experts in every family: those that are read, and those that only training reads.
inline constexpr std::array<std::string_view, 37> kExpertKeyNames{"num_experts",
                                                                  "num_local_experts",
                                                                  "n_routed_experts",
                                                                  "moe_num_experts",
                                                                  "num_experts_per_tok",
                                                                  "moe_k",
                                                                  "moe_topk",
                                                                  "num_shared_expert",
                                                                  "swiglu_alpha",
                                                                  "swiglu_limit",
                                                                  "moe_intermediate_size",
                                                                  "norm_topk_prob",
                                                                  "decoder_sparse_step",
                                                                  "mlp_only_layers",
                                                                  "shared_expert_intermediate_size",
                                                                  "n_shared_experts",
                                                                  "moe_num_shared_experts",
                                                                  "routed_scaling_factor",
                                                                  "n_group",
                                                                  "topk_group",
                                                                  "first_k_dense_replace",
                                                                  "moe_layer_start_index",
                                                                  "moe_layer_end_index",
                                                                  "moe_layer_interval",
                                                                  "moe_norm_min",
                                                                  "output_router_logits",
                                                                  "router_aux_loss_coef",
                                                                  "router_jitter_noise",
                                                                  "num_nextn_predict_layers",
                                                                  "num_mtp_layers",
                                                                  "scoring_func",
                                                                  "mlp_layer_types",
                                                                  "topk_method",
                                                                  "moe_layer_freq",
                                                                  "ep_size",
                                                                  "aux_loss_alpha",
                                                                  "seq_aux"};

/// Keys of config.json that state a model's experts. Empty: the family has no such key.
struct ExpertKeys {
  // The class's own key, and its other name in the class's attribute_map.
  std::array<std::string_view, 2> count{"num_local_experts", "num_experts"}, chosen{"num_experts_per_tok", ""};
  std::string_view width = "moe_intermediate_size";
  std::string_view shared_width = {};
  std::string_view normalised = {};        // switch of ExpertsConfig::normalised; empty: always
  std::string_view shared_count = {};      // shared experts of an expert's width
  std::string_view least_sum = {};         // key of ExpertsConfig::least_sum; 1e-12 if it is missing
  bool groups = false;                     // n_group, topk_group, routed_scaling_factor
  bool scaled = false;                     // routed_scaling_factor alone
  std::string_view step = {};              // every step-th layer has experts
  std::string_view dense = {};             // list of layers without experts
  std::string_view types = {};             // list of "dense" and "sparse", which holds before `first`
  std::string_view first = {}, last = {};  // the first and the last layer with experts; −1: the model's last
  std::size_t first_default = 0, shared_count_default = 0;
  bool normalised_default = false;
  ExpertsConfig::Scores scores = ExpertsConfig::Scores::kSoftmax;
  bool clamped = false;  // swiglu_alpha, swiglu_limit
  float scale_default = 1;
  std::size_t groups_default = 1, chosen_groups_default = 1;
  std::size_t count_default = 0, chosen_default = 0, width_default = 0, shared_width_default = 0;
};

/// Returns `keys` for classes that also know the number of experts by a third name, num_experts, which holds if it is
/// there. Source: DeepseekV32Config in Transformers.
ExpertKeys with_other_count(const JsonCursor& root, ExpertKeys keys);

/// Reads the experts of a config.json, and the layers that have them. Keys of other families have no effect.
/// @throws Error kInput with the JSON pointer, also for two names of one number that differ.
ExpertLayers read_experts(const JsonCursor& root, std::size_t layers, const ExpertKeys& keys);

}  // namespace kvs::inline model
