// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/hf_mla.h"

#include "export/exporters/hf_folder.h"
#include "export/exporters/mla.h"
#include "model/rope_json.h"

namespace kvs::inline exporting {
namespace {

constexpr double kLatentEpsilon = 1e-6;  // default of the classes' RMSNorm, used for the latent

MlaTarget transformers_target() {
  using enum RopeScaling::Type;
  return {kLatentEpsilon, {kDefault, kLinear, kLlama3}};
}

Json rope_parameters(const RopeParameters& rope) {
  Json parameters{{"rope_theta", rope.theta}};
  const Json scaling = rope_scaling_json(rope.scaling);
  if (scaling.is_null()) {
    parameters["rope_type"] = "default";
  } else {
    parameters.update(scaling);
    if (const auto length = parameters.find("original_max_position_embeddings"); length != parameters.end())
      *length = static_cast<std::uint64_t>(length->get<double>());  // Transformers requires an integer
  }
  return parameters;
}

std::vector<OutputTensor> hf_tensors(const MlaModel& mla) {
  const EliteModel& source = mla.source();
  std::vector<OutputTensor> tensors{source.kept("model.embed_tokens.weight", TensorRole::kEmbedding)};
  for (std::size_t layer = 0; layer < mla.model().layers(); ++layer) {
    const std::string attention = "model.layers." + std::to_string(layer) + ".self_attn.";
    tensors.push_back(mla.queries(attention + "q_proj.weight", layer));
    tensors.push_back(mla.compress(attention + "kv_a_proj_with_mqa.weight", layer));
    tensors.push_back(mla.norm(attention + "kv_a_layernorm.weight"));
    tensors.push_back(mla.expand(attention + "kv_b_proj.weight", layer));
    add_hf_layer(source, layer, tensors);
  }
  add_hf_head(source, tensors);
  return tensors;
}

Json write_folder(const ExportJob& job, const Json& own) {
  const MlaModel mla(job, transformers_target());
  const MlaShape& shape = mla.shape();
  Json config = own;
  config.update(hf_config(mla.model()));
  config.update(Json{{"num_key_value_heads", mla.model().query_heads()},
                     {"q_lora_rank", nullptr},
                     {"kv_lora_rank", shape.rank},
                     {"qk_nope_head_dim", shape.nope},
                     {"qk_rope_head_dim", shape.rope},
                     {"v_head_dim", shape.value},
                     {"rope_interleave", true},
                     {"rope_parameters", rope_parameters(mla.model().ropes.front())}});
  Json result{{"cache", cache_json(mla.model(), shape.rank, shape.rope)}};
  result["notes"] = write_hf_folder(job, std::move(config), hf_tensors(mla));
  if (mla.model().norm_epsilon != static_cast<float>(kLatentEpsilon))
    result["notes"].push_back(
        "the latent's norm is written for an epsilon of 1e-6, which Transformers takes; engines that take the model's "
        "rms_norm_eps there compute something else");
  return result;
}

}  // namespace

Json write_hf_youtu(const ExportJob& job) {
  return write_folder(job, {{"architectures", {"YoutuForCausalLM"}}, {"model_type", "youtu"}});
}

Json write_hf_deepseek(const ExportJob& job) {
  return write_folder(job, {{"architectures", {"DeepseekV3ForCausalLM"}},
                            {"model_type", "deepseek_v3"},
                            {"first_k_dense_replace", job.model.config().layers()},
                            {"n_routed_experts", 1},
                            {"n_shared_experts", 1},
                            {"num_experts_per_tok", 1},
                            {"n_group", 1},
                            {"topk_group", 1},
                            {"moe_intermediate_size", 16},
                            {"num_nextn_predict_layers", 0}});
}

}  // namespace kvs::inline exporting
