#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "model/architecture.h"
#include "model/config.h"

namespace kvs {

class GgufFile;

/// What a model's metadata says, checked on its own but not yet against the tensors.
struct ParsedConfig {
  ModelConfig config;
  const Architecture* architecture = nullptr;
  bool attention_bias = false, mlp_bias = false;  // config.json only; in GGUF the tensors decide
  std::vector<std::string> notes;                 // worth a line to the user, not wrong
};

/// @throws Error kInput (file, JSON pointer, found, expected), kUnsupported (architecture, RoPE scaling, activation,
///         kind of layer, quantisation, or another key that this would not honour, by name).
ParsedConfig parse_hf_config(const std::filesystem::path& path);

/// The same from GGUF metadata; `vocabulary` and `tied_head` follow from the tensors present.
ParsedConfig parse_gguf_config(const GgufFile& file);

/// A model's name as outputs hold it: files and folders may have names that are no text, or endless ones.
inline std::string shown_name(std::string_view name) { return printable(name, 200); }

/// Checks that hold for either format and fills what follows from the rest (head_dim 0: d_model / query_heads).
/// @param names  the format's keys of d_model, query_heads, kv_heads, head_dim, for messages
struct GeometryKeys {
  std::string_view d_model, query_heads, kv_heads, head_dim;
};
void complete_geometry(ModelConfig& config, std::string_view where, const GeometryKeys& names);

/// Parameters that are each in range may still yield NaN together: YaRN with a theta of 1.
/// @throws Error kInput if a frequency, within the context or at twice its length, is not finite.
void check_rope(const ModelConfig& config, std::string_view where);

/// Largest values that a config may state; products of any three of them fit in 64 bits.
inline constexpr std::uint64_t kMaxLayers = 4096, kMaxHeads = 1 << 14, kMaxWidth = 1 << 20,
                               kMaxVocabularySize = 1 << 24, kMaxContext = 1UL << 40;

}  // namespace kvs
