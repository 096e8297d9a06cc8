// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "model/architecture.h"
#include "model/checkpoints/checkpoint_format.h"
#include "model/config.h"

namespace kvs::inline io {
class GgufFile;
}  // namespace kvs::inline io

namespace kvs::inline model {

/// A model's metadata, checked on its own but not yet against the tensors.
struct ParsedConfig {
  ModelConfig config;
  const Architecture* architecture = nullptr;
  bool composite = false;       // the language part of a composite (composite.h), whose tensors have other prefixes
  bool hf_interleaved = false;  // config.json's weights store the rows of RoPE pairs next to each other
  std::shared_ptr<const QuantizedWeights> weights = {};  // nullptr: none is quantised
  // config.json only; in GGUF the tensors decide
  bool attention_bias = false, output_bias = false, mlp_bias = false, convolution_bias = false;
  bool router_bias = true;                   // a router's scores have a bias for the choice, if the family has one
  std::map<TensorRole, float> factors = {};  // of weights, by which their outputs are multiplied
  std::vector<std::string> notes;            // for the user; not errors
};

/// @throws Error kInput (file, JSON pointer, found, expected), kUnsupported (architecture, RoPE scaling, activation,
/// kind of layer, quantisation, or another key that is not supported, by name).
ParsedConfig parse_hf_config(const std::filesystem::path& path);

/// Parses GGUF metadata; `vocabulary` and `tied_head` follow from the tensors present.
ParsedConfig parse_gguf_config(const GgufFile& file);

/// Returns a model's name for outputs: names of files and folders may be very long or not valid text.
inline std::string shown_name(std::string_view name) { return printable(name, 200); }

/// Runs checks that hold for either format and fills derived values (head_dim 0: d_model / query_heads).
/// @param names  the format's keys of d_model, query_heads, kv_heads, head_dim, for messages
struct GeometryKeys {
  std::string_view d_model, query_heads, kv_heads, head_dim;
};
void complete_geometry(AttentionConfig& heads, std::size_t d_model, std::string_view where, const GeometryKeys& names);

/// Checks that layers that read other layers' keys and values have their sizes. @throws Error kInput with the layers.
void check_shared_layers(const ModelConfig& config, std::string_view where);

/// Checks combinations: parameters within their ranges may still yield NaN, for example YaRN with a theta of 1.
/// @throws Error kInput if a frequency, within the context or at twice its length, is not finite.
void check_rope(const ModelConfig& config, std::string_view where);

/// Largest values that a config may state. The product of any three different ones without the context fits in 64 bits.
inline constexpr std::uint64_t kMaxLayers = 4096, kMaxHeads = 1 << 14, kMaxWidth = 1 << 20,
                               kMaxVocabularySize = 1 << 24, kMaxContext = 1UL << 40;

}  // namespace kvs::inline model
