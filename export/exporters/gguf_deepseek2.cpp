// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/gguf_deepseek2.h"

#include "export/exporters/mla.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "model/model_tensors.h"
#include "tokenizer/gguf_tokenizer_writer.h"

namespace kvs::inline exporting {
namespace {

constexpr std::string_view kPrefix = "deepseek2.";

// llama.h: enum llama_ftype, the type of most tensors.
constexpr std::uint32_t kAllF32 = 0, kMostlyBf16 = 32;

/// Adds the keys of the architecture. llama.cpp requires the keys of experts, too, although no layer has experts.
void add_geometry(const MlaModel& mla, GgufMetadataWriter& metadata) {
  const ModelConfig& model = mla.model();
  const MlaShape& shape = mla.shape();
  const auto add = [&](const std::string& key, std::size_t value) {
    metadata.add(std::string(kPrefix) + key, static_cast<std::uint32_t>(value));
  };
  add("block_count", model.layers());
  add("context_length", model.context);
  add("embedding_length", model.d_model);
  add("feed_forward_length", model.d_ff());
  add("vocab_size", model.vocabulary);
  add("leading_dense_block_count", model.layers());
  add("expert_feed_forward_length", model.d_ff());
  add("expert_shared_count", 0);
  add("attention.head_count", model.query_heads());
  add("attention.head_count_kv", 1);
  add("attention.q_lora_rank", 0);
  add("attention.kv_lora_rank", shape.rank);
  add("attention.key_length", shape.cached());
  add("attention.value_length", shape.rank);
  add("attention.key_length_mla", shape.query());
  add("attention.value_length_mla", shape.value);
  add("rope.dimension_count", shape.rope);
  metadata.add(std::string(kPrefix) + "attention.layer_norm_rms_epsilon", model.norm_epsilon);
  metadata.add(std::string(kPrefix) + "rope.freq_base", static_cast<float>(model.ropes.front().theta));
}

std::vector<OutputTensor> gguf_tensors(const MlaModel& mla) {
  using enum TensorRole;
  const ModelConfig& model = mla.model();
  const EliteModel& source = mla.source();
  std::vector<OutputTensor> tensors{source.kept("token_embd.weight", kEmbedding)};
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + '.';
    tensors.push_back(source.kept(prefix + "attn_norm.weight", kAttentionNorm, layer));
    tensors.push_back(mla.queries(prefix + "attn_q.weight", layer));
    tensors.push_back(mla.compress(prefix + "attn_kv_a_mqa.weight", layer));
    tensors.push_back(mla.norm(prefix + "attn_kv_a_norm.weight"));
    tensors.push_back(mla.expand_keys(prefix + "attn_k_b.weight", layer));
    tensors.push_back(mla.expand_values(prefix + "attn_v_b.weight", layer));
    tensors.push_back(source.output(prefix + "attn_output.weight", layer));
    tensors.push_back(source.kept(prefix + "ffn_norm.weight", kFeedForwardNorm, layer));
    tensors.push_back(source.kept(prefix + "ffn_gate.weight", kGate, layer));
    tensors.push_back(source.kept(prefix + "ffn_up.weight", kUp, layer));
    tensors.push_back(source.kept(prefix + "ffn_down.weight", kDown, layer));
  }
  tensors.push_back(source.kept("output_norm.weight", kFinalNorm));
  if (!model.tied_head) tensors.push_back(source.kept("output.weight", kHead));
  for (OutputTensor& tensor : tensors)
    if (tensor.shape.size() == 1) tensor.type = DType::kF32;
  return tensors;
}

/// Adds the tokenizer. Returns why there is none, or an empty string.
std::string add_tokenizer(const ModelSource& model, GgufMetadataWriter& metadata, std::vector<std::string>& notes) {
  if (model.format() != ModelFormat::kGguf)
    return add_tokenizer_json(model.path(), model.config().vocabulary, metadata, notes);
  for (const auto& [key, value] : dynamic_cast<const GgufFile&>(model.archive()).encoded())
    if (key.starts_with("tokenizer.")) metadata.add_encoded(key, value);
  return {};
}

}  // namespace

Json write_gguf_deepseek2(const ExportJob& job) {
  const MlaModel mla(job, {job.model.config().norm_epsilon, {RopeScaling::Type::kDefault}});
  GgufMetadataWriter metadata;
  metadata.add("general.architecture", "deepseek2");
  metadata.add("general.type", "model");
  metadata.add("general.name", mla.model().name);
  metadata.add("general.file_type", job.type == DType::kF32 ? kAllF32 : kMostlyBf16);
  add_geometry(mla, metadata);
  Json result{{"cache", cache_json(mla.model(), mla.shape().rank, mla.shape().rope)}, {"notes", Json::array()}};
  std::vector<std::string> notes;
  if (const std::string obstacle = add_tokenizer(job.model, metadata, notes); !obstacle.empty()) {
    metadata.add("tokenizer.ggml.model", "none");
    notes.push_back("no tokenizer is written, so that the model takes token ids alone: " + obstacle);
  }
  result["notes"] = notes;
  const std::vector<OutputTensor> tensors = gguf_tensors(mla);
  write_gguf(job.out, metadata, tensors, byte_progress(job, tensors));
  return result;
}

}  // namespace kvs::inline exporting
