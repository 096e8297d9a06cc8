#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "export/exporters/elite_rows.h"

namespace kvs {

/// What every Llama-like class reads from config.json, attention left out.
Json hf_config(const ModelConfig& model);
/// What of a layer stays as it is, and what does not belong to layers, by Llama's names.
void add_hf_layer(const EliteModel& source, std::size_t layer, std::vector<OutputTensor>& tensors);
void add_hf_head(const EliteModel& source, std::vector<OutputTensor>& tensors);

/// Writes a Hugging Face model into job.out: config.json (with the ids of the model's special tokens and the dtype
/// added), safetensors, the tokenizer. The model's own tokenizer files are copied; from a GGUF file a tokenizer.json is
/// made. @return notes
Json write_hf_folder(const ExportJob& job, Json config, std::span<const OutputTensor> tensors);

/// The ids of the model's special tokens by their names in config.json; null where there is none.
Json special_ids(const ModelSource& model);
/// Copies the folder of chat templates beside chat_template.jinja, if there is one.
void copy_more_templates(const std::filesystem::path& from, const std::filesystem::path& to);
inline constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

}  // namespace kvs
