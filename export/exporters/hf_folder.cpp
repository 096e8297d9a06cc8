// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/hf_folder.h"

#include <array>
#include <charconv>

#include "core/error.h"
#include "io/file.h"
#include "io/gguf.h"
#include "io/python_json.h"
#include "io/safetensors_writer.h"
#include "model/model_tensors.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer_json_writer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMoreTemplates = "additional_chat_templates";
constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20;
constexpr std::array kTokenizerFiles{"tokenizer.json",  "tokenizer_config.json", "special_tokens_map.json",
                                     "tokenizer.model", "added_tokens.json",     "vocab.json",
                                     "merges.txt",      "chat_template.jinja",   "generation_config.json"};
// No pad_token_id: YoutuForCausalLM zeroes the embedding row of that id, whatever the checkpoint holds.
constexpr std::array kSpecialIds{"bos_token_id", "eos_token_id"};

/// Names the tokenizer's class, as AutoTokenizer would choose another one for the written model type.
void keep_tokenizer_class(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from / "tokenizer.json")) return;
  const fs::path tokenizer = from / "tokenizer.json", path = to / "tokenizer_config.json";
  const TokenizerSettings settings = read_tokenizer_settings(
      from,
      parse_json(read_text_file(tokenizer, kMaxTokenizerBytes), tokenizer.string(), {.bytes = kMaxTokenizerBytes}));
  Json config =
      fs::exists(path) ? parse_python_json(read_text_file(path, kMaxConfigBytes), path.string()) : Json::object();
  config["tokenizer_class"] = settings.class_name.empty() ? "PreTrainedTokenizerFast" : settings.class_name;
  write_file_atomically(path, dump_python_json(config) + "\n", true);
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : kTokenizerFiles)
    if (fs::exists(from / name)) copy_regular_file(from / name, to / name);
  copy_more_templates(from, to);
  keep_tokenizer_class(from, to);
}

/// Returns the ids of special tokens from the source's config.json.
Json special_ids(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const Json config = parse_python_json(read_text_file(path, kMaxConfigBytes), path.string());
  const Json text = config.value("text_config", Json::object());  // of a composite
  Json ids = Json::object();
  for (const char* name : kSpecialIds) {
    ids[name] = config.value(name, Json());
    if (ids[name].is_null() && text.is_object()) ids[name] = text.value(name, Json());
  }
  return ids;
}

Json special_ids(const GgufFile& file, std::size_t tokens) {
  Json ids = Json::object();
  for (const char* name : kSpecialIds) {
    const auto id = stated_gguf_token(file, name, tokens);
    ids[name] = id ? Json(*id) : Json();
  }
  return ids;
}

/// Returns the shortest decimal of an f32: 1e-5, not 9.99999975e-06.
double shortest_decimal(float value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  std::from_chars(text.data(), end, result);
  return result;
}

}  // namespace

void copy_more_templates(const fs::path& from, const fs::path& to) {
  const fs::path folder = from / kMoreTemplates;
  if (!fs::is_directory(folder)) return;
  fs::create_directory(to / kMoreTemplates);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) copy_regular_file(entry.path(), to / kMoreTemplates / entry.path().filename());
}

Json special_ids(const ModelSource& model) {
  if (model.format() == ModelFormat::kGguf)
    return special_ids(dynamic_cast<const GgufFile&>(model.archive()), model.config().vocabulary);
  return special_ids(model.path());
}

Json hf_config(const ModelConfig& model) {
  return {{"hidden_size", model.d_model},
          {"intermediate_size", model.d_ff()},
          {"num_hidden_layers", model.layers()},
          {"num_attention_heads", model.query_heads()},
          {"max_position_embeddings", model.context},
          {"attention_bias", false},
          {"rms_norm_eps", shortest_decimal(model.norm_epsilon)},
          {"hidden_act", "silu"},
          {"vocab_size", model.vocabulary},
          {"tie_word_embeddings", model.tied_head}};
}

void add_hf_layer(const EliteModel& source, std::size_t layer, std::vector<OutputTensor>& tensors) {
  using enum TensorRole;
  const std::string prefix = "model.layers." + std::to_string(layer) + '.';
  tensors.push_back(source.output(prefix + "self_attn.o_proj.weight", layer));
  tensors.push_back(source.kept(prefix + "input_layernorm.weight", kAttentionNorm, layer));
  tensors.push_back(source.kept(prefix + "post_attention_layernorm.weight", kFeedForwardNorm, layer));
  tensors.push_back(source.kept(prefix + "mlp.gate_proj.weight", kGate, layer));
  tensors.push_back(source.kept(prefix + "mlp.up_proj.weight", kUp, layer));
  tensors.push_back(source.kept(prefix + "mlp.down_proj.weight", kDown, layer));
}

void add_hf_head(const EliteModel& source, std::vector<OutputTensor>& tensors) {
  tensors.push_back(source.kept("model.norm.weight", TensorRole::kFinalNorm));
  if (!source.model().tied_head) tensors.push_back(source.kept("lm_head.weight", TensorRole::kHead));
}

Json write_hf_folder(const ExportJob& job, Json config, std::span<const OutputTensor> tensors) {
  Json notes = Json::array();
  config.update(special_ids(job.model));
  if (job.model.format() == ModelFormat::kGguf) {
    const auto& file = dynamic_cast<const GgufFile&>(job.model.archive());
    if (const std::string obstacle = write_tokenizer_json(file, job.out); !obstacle.empty())
      notes.push_back("no tokenizer is written: " + obstacle);
  } else {
    copy_tokenizer(job.model.path(), job.out);
  }
  config["dtype"] = job.type == DType::kF32 ? "float32" : job.type == DType::kBF16 ? "bfloat16" : "float16";
  write_file_atomically(job.out / "config.json", dump_json(config) + "\n", false);
  write_safetensors_shards(job.out, tensors, byte_progress(job, tensors));
  return notes;
}

}  // namespace kvs::inline exporting
