// SPDX-License-Identifier: Apache-2.0
#include "model/config_json.h"

#include <cmath>

#include "model/rope_json.h"

namespace kvs::inline model {
namespace {

Json arithmetic_json(const Arithmetic& arithmetic) {
  const auto& [norm, input_norms, output_norms, qk_norm, norms_after_rope, value_norm, activation, gated,
               parallel_residual, scaled_embeddings] = arithmetic;
  Json json{norm,       input_norms, output_norms,      qk_norm,          norms_after_rope,
            activation, gated,       parallel_residual, scaled_embeddings};
  if (value_norm) json.push_back("value_norm");
  return json;
}

Json recurrence_json(const RecurrenceConfig& block) {
  const auto& [kind, key_heads, value_heads, key_head_dim, value_head_dim, kernel, norm_channels, gate_first,
               least_step, most_step, tiled_heads] = block;
  Json json{kind,   key_heads,     value_heads, key_head_dim, value_head_dim,
            kernel, norm_channels, gate_first,  least_step,   std::isfinite(most_step) ? Json(most_step) : Json()};
  if (tiled_heads) json.push_back("tiled_heads");
  return json;
}

Json layer_json(const LayerConfig& layer) {
  const auto& [query_heads, kv_heads, head_dim, window, chunk, rope, scale, softcap, clip, sinks, temperature,
               unit_norms, one_row, kv_layer, latent_attention] = layer.attention;
  const auto& [rank, query_rank, plain_dim, value_dim, index] = latent_attention;
  const auto& [d_ff, sparsity, experts] = layer.feed_forward;
  const auto& [count, chosen, expert_d_ff, shared_d_ff, latent, scores, normalised, least_sum, clamp, scale_of_experts,
               groups, chosen_groups, group_scores, scaled_inputs, beside_dense] = experts;
  Json json{query_heads, kv_heads,          head_dim,           window, rope, scale, softcap,
            clip,        temperature.scale, temperature.length, sinks,  d_ff};
  if (count > 0)
    json.push_back({count, chosen, expert_d_ff, shared_d_ff, scores, normalised, clamp.alpha, clamp.limit,
                    scale_of_experts, groups, chosen_groups});
  if (latent > 0) json.back().push_back(latent);
  if (least_sum > 0) json.back().push_back({"least_sum", least_sum});
  if (layer.has_recurrence()) json.push_back(recurrence_json(layer.recurrence));
  if (sparsity > 0) json.push_back({"sparsity", sparsity});
  if (scaled_inputs) json.push_back("scaled_inputs");
  if (beside_dense) json.push_back("beside_dense");
  if (chunk > 0) json.push_back({"chunk", chunk});
  if (temperature.shift > 0) json.push_back({"shift", temperature.shift});
  if (unit_norms) json.push_back("unit_norms");
  if (one_row) json.push_back("one_row");
  if (rank > 0) json.push_back({"latent", rank, query_rank, plain_dim, value_dim});
  if (index.chosen > 0) json.push_back({"index", index.chosen, index.heads, index.dim, index.shared});
  if (group_scores != 2) json.push_back({"group_scores", group_scores});
  if (kv_layer) json.push_back({"kv_layer", *kv_layer});
  return json;
}

}  // namespace

// The structured bindings fail to compile when a member is added that is missing here.
Json config_json(const ModelConfig& config) {
  const auto& [name, architecture, layer, d_model, vocabulary, context, norm_epsilon, ropes, tied_head, arithmetic,
               layer_inputs, layer_input_vocabulary, layer_input_for_others, streams, laurel_rank, logit_softcap,
               embedding_scale, residual_scale, logit_scale, adjacent_pairs] = config;
  Json layers = Json::array();
  for (const LayerConfig& each : layer) layers.push_back(layer_json(each));
  Json json{{"architecture", architecture},
            {"layers", layers},
            {"d_model", d_model},
            {"vocabulary", vocabulary},
            {"context", context},
            {"norm_epsilon", norm_epsilon},
            {"ropes", ropes_json(ropes)},
            {"tied_head", tied_head},
            {"arithmetic", arithmetic_json(arithmetic)},
            {"logit_softcap", logit_softcap},
            {"scales", {embedding_scale, residual_scale, logit_scale}},
            {"adjacent_pairs", adjacent_pairs}};
  if (layer_inputs > 0) json["layer_inputs"] = {layer_inputs, layer_input_vocabulary};
  if (layer_input_for_others) json["layer_inputs"].push_back("for_others");
  if (streams.count > 1) json["streams"] = {streams.count, streams.scaled};
  if (laurel_rank > 0) json["laurel_rank"] = laurel_rank;
  return json;
}

}  // namespace kvs::inline model
