// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "export/exporters/elite_rows.h"

namespace kvs::inline exporting {

/// Returns the members of config.json that every Llama-like class reads, without those of attention.
Json hf_config(const ModelConfig& model);
/// Add the unchanged tensors of a layer, and the tensors outside layers, with Llama's names.
void add_hf_layer(const EliteModel& source, std::size_t layer, std::vector<OutputTensor>& tensors);
void add_hf_head(const EliteModel& source, std::vector<OutputTensor>& tensors);

/// Writes a Hugging Face model into job.out: config.json (with the ids of special tokens and the dtype added),
/// safetensors and the tokenizer. The model's own tokenizer files are copied. For a GGUF file, a tokenizer.json is
/// made.
/// @return notes
Json write_hf_folder(const ExportJob& job, Json config, std::span<const OutputTensor> tensors);

/// Returns the ids of the model's special tokens by their names in config.json; null for a missing id.
Json special_ids(const ModelSource& model);
/// Copies the folder of additional chat templates next to chat_template.jinja, if it exists.
void copy_more_templates(const std::filesystem::path& from, const std::filesystem::path& to);
inline constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

}  // namespace kvs::inline exporting
