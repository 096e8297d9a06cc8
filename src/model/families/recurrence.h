#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace kvs::inline model {

/// Reads the name of each layer's kind from layer_types: [layer], an index of `kinds`. Empty: the key is missing.
/// @throws Error kInput with the JSON pointer, kUnsupported for another kind.
std::vector<std::size_t> read_layer_types(const JsonCursor& root, std::size_t layers,
                                          std::span<const std::string_view> kinds);

/// Keys of config.json of the Gated DeltaNet of Qwen 3 Next and Qwen 3.5.
inline constexpr std::array<std::string_view, 9> kDeltaNetKeyNames{
    "full_attention_interval", "linear_conv_kernel_dim", "linear_key_head_dim",
    "linear_value_head_dim",   "linear_num_key_heads",   "linear_num_value_heads",
    "mamba_ssm_dtype",         "mtp_num_hidden_layers",  "mtp_use_dedicated_embeddings"};

/// Sets the Gated DeltaNet of the layers of type linear_attention: by layer_types, or all but every
/// full_attention_interval-th. @throws Error kInput with the JSON pointer.
void read_delta_net(const JsonCursor& root, std::vector<LayerConfig>& layers);

}  // namespace kvs::inline model
