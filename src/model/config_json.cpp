#include "model/config_json.h"

#include "model/rope_json.h"

namespace kvs::inline model {
namespace {

Json arithmetic_json(const Arithmetic& arithmetic) {
  const auto& [norm, input_norms, output_norms, qk_norm, activation, gated, parallel_residual, scaled_embeddings] =
      arithmetic;
  return {norm, input_norms, output_norms, qk_norm, activation, gated, parallel_residual, scaled_embeddings};
}

}  // namespace

// The structured binding fails to compile when a member is added that is missing here.
Json config_json(const ModelConfig& config) {
  const auto& [name, architecture, layers, d_model, d_ff, query_heads, kv_heads, head_dim, vocabulary, context,
               norm_epsilon, ropes, layer_ropes, tied_head, arithmetic, attention_scale, attention_softcap,
               logit_softcap, adjacent_pairs, windows] = config;
  return {{"architecture", architecture},
          {"layers", layers},
          {"d_model", d_model},
          {"d_ff", d_ff},
          {"query_heads", query_heads},
          {"kv_heads", kv_heads},
          {"head_dim", head_dim},
          {"vocabulary", vocabulary},
          {"context", context},
          {"norm_epsilon", norm_epsilon},
          {"ropes", ropes_json(ropes)},
          {"layer_ropes", layer_ropes},
          {"tied_head", tied_head},
          {"arithmetic", arithmetic_json(arithmetic)},
          {"attention_scale", attention_scale},
          {"attention_softcap", attention_softcap},
          {"logit_softcap", logit_softcap},
          {"adjacent_pairs", adjacent_pairs},
          {"windows", windows}};
}

}  // namespace kvs::inline model
