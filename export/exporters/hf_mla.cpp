#include "export/exporters/hf_mla.h"

#include "export/exporters/hf_folder.h"
#include "export/exporters/mla.h"
#include "model/rope.h"

namespace kvs {
namespace {

constexpr double kLatentEpsilon = 1e-6;  // the default of the classes' RMSNorm, which the latent's takes

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
      *length = static_cast<std::uint64_t>(length->get<double>());  // Transformers wants an integer
  }
  return parameters;
}

/// What both classes read.
Json shared_config(const MlaModel& mla) {
  const ModelConfig& model = mla.model();
  const MlaShape& shape = mla.shape();
  return {{"hidden_size", model.d_model},
          {"intermediate_size", model.d_ff},
          {"num_hidden_layers", model.layers},
          {"num_attention_heads", model.query_heads},
          {"num_key_value_heads", model.query_heads},
          {"q_lora_rank", nullptr},
          {"kv_lora_rank", shape.rank},
          {"qk_nope_head_dim", shape.nope},
          {"qk_rope_head_dim", shape.rope},
          {"v_head_dim", shape.value},
          {"rope_interleave", true},
          {"rope_parameters", rope_parameters(model.ropes.front())},
          {"max_position_embeddings", model.context},
          {"attention_bias", false},
          {"rms_norm_eps", shortest_decimal(model.norm_epsilon)},
          {"hidden_act", "silu"},
          {"vocab_size", model.vocabulary},
          {"tie_word_embeddings", model.tied_head}};
}

std::vector<OutputTensor> hf_tensors(const MlaModel& mla) {
  using enum TensorRole;
  const ModelConfig& model = mla.model();
  std::vector<OutputTensor> tensors{mla.kept("model.embed_tokens.weight", kEmbedding)};
  for (std::size_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + '.', attention = prefix + "self_attn.";
    tensors.push_back(mla.kept(prefix + "input_layernorm.weight", kAttentionNorm, layer));
    tensors.push_back(mla.queries(attention + "q_proj.weight", layer));
    tensors.push_back(mla.compress(attention + "kv_a_proj_with_mqa.weight", layer));
    tensors.push_back(mla.norm(attention + "kv_a_layernorm.weight"));
    tensors.push_back(mla.expand(attention + "kv_b_proj.weight", layer));
    tensors.push_back(mla.kept(attention + "o_proj.weight", kOutput, layer));
    tensors.push_back(mla.kept(prefix + "post_attention_layernorm.weight", kFeedForwardNorm, layer));
    tensors.push_back(mla.kept(prefix + "mlp.gate_proj.weight", kGate, layer));
    tensors.push_back(mla.kept(prefix + "mlp.up_proj.weight", kUp, layer));
    tensors.push_back(mla.kept(prefix + "mlp.down_proj.weight", kDown, layer));
  }
  tensors.push_back(mla.kept("model.norm.weight", kFinalNorm));
  if (!model.tied_head) tensors.push_back(mla.kept("lm_head.weight", kHead));
  return tensors;
}

Json write_folder(const ExportJob& job, const Json& own) {
  const MlaModel mla(job, transformers_target());
  Json config = own;
  config.update(shared_config(mla));
  Json result{{"cache", mla.cache()}};
  result["notes"] = write_hf_folder(job, std::move(config), hf_tensors(mla));
  if (mla.model().norm_epsilon != static_cast<float>(kLatentEpsilon))
    result["notes"].push_back(
        "the latent's norm is written for an epsilon of 1e-6, which Transformers takes; an engine that takes the "
        "model's "
        "rms_norm_eps there would be wrong");
  return result;
}

}  // namespace

Json write_hf_youtu(const ExportJob& job) {
  return write_folder(job, {{"architectures", {"YoutuForCausalLM"}}, {"model_type", "youtu"}});
}

Json write_hf_deepseek(const ExportJob& job) {
  return write_folder(job, {{"architectures", {"DeepseekV3ForCausalLM"}},
                            {"model_type", "deepseek_v3"},
                            {"first_k_dense_replace", job.model.config().layers},
                            {"n_routed_experts", 1},
                            {"n_shared_experts", 1},
                            {"num_experts_per_tok", 1},
                            {"n_group", 1},
                            {"topk_group", 1},
                            {"moe_intermediate_size", 16},
                            {"num_nextn_predict_layers", 0}});
}

}  // namespace kvs
