// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace kvs::inline model {

inline constexpr std::uint64_t kMaxTaps = 64;

/// Reads the name of each layer's kind from layer_types, or another `key`: [layer], an index of `kinds`. Empty: the key
/// is missing. @throws Error kInput with the JSON pointer, kUnsupported for another kind.
std::vector<std::size_t> read_layer_types(const JsonCursor& root, std::size_t layers,
                                          std::span<const std::string_view> kinds,
                                          std::string_view key = "layer_types");
/// The names of layers with attention and with a recurrent block in layer_types, in this order by pairs.
inline constexpr std::array<std::string_view, 4> kMixerKinds{"full_attention", "attention", "linear_attention",
                                                             "mamba"};
constexpr bool is_recurrent(std::size_t kind) noexcept { return kind >= 2; }

/// Keys of config.json of the Gated DeltaNet of Qwen 3 Next and Qwen 3.5.
inline constexpr std::array<std::string_view, 9> kDeltaNetKeyNames{
    "full_attention_interval", "linear_conv_kernel_dim", "linear_key_head_dim",
    "linear_value_head_dim",   "linear_num_key_heads",   "linear_num_value_heads",
    "mamba_ssm_dtype",         "mtp_num_hidden_layers",  "mtp_use_dedicated_embeddings"};

/// Sets the Gated DeltaNet of the layers of type linear_attention: by layer_types, or all but every
/// full_attention_interval-th. @throws Error kInput with the JSON pointer.
void read_delta_net(const JsonCursor& root, ParsedConfig& parsed);

/// Like read_delta_net(), from GGUF metadata. @throws Error with the key.
void read_gguf_delta_net(const GgufKeys& keys, ParsedConfig& parsed);
/// Like read_gguf_delta_net(), for files whose value heads are tiled (RecurrenceConfig::tiled_heads).
void read_gguf_tiled_delta_net(const GgufKeys& keys, ParsedConfig& parsed);

/// Keys of config.json of Mamba-2, as Granite and Falcon write them, and those that only training or kernels read.
inline constexpr std::array<std::string_view, 10> kMamba2KeyNames{
    "mamba_chunk_size", "mamba_conv_bias", "mamba_d_conv",  "mamba_d_head",   "mamba_d_ssm",
    "mamba_d_state",    "mamba_expand",    "mamba_n_heads", "mamba_n_groups", "time_step_limit"};

/// Keys of the sizes of a Mamba-2 block with the defaults of its class.
struct Mamba2Keys {
  std::string_view heads = "mamba_n_heads", head_dim = "mamba_d_head", groups = "mamba_n_groups",
                   state = "mamba_d_state", kernel = "mamba_d_conv";
  std::size_t heads_default = 128, head_dim_default = 0, groups_default = 1, state_default = 256;
  std::string_view inner = {};  // channels of all heads; without it mamba_expand · hidden_size
  std::size_t inner_default = 0;
};

/// Reads a Mamba-2 block with a norm after its gate, over the channels of a group. @throws Error kInput with the JSON
/// pointer.
RecurrenceConfig read_mamba2(const JsonCursor& root, const Mamba2Keys& keys);
/// Like read_mamba2(), from GGUF metadata.
/// @param norm  name of the norm's tensor in a layer; if the file lacks it, the block has no norm
RecurrenceConfig read_gguf_mamba2(const GgufKeys& keys, std::string_view norm);
/// Gives `block` to the layers without attention.
void set_gguf_mixers(const RecurrenceConfig& block, ParsedConfig& parsed);
/// Refuses another function than SiLU after the convolution of recurrent blocks. @throws Error kUnsupported
void check_mixer_activation(const JsonCursor& root, std::string_view key);
/// Reads time_step_limit, whose end may be Infinity.
void read_step_limits(const JsonCursor& root, RecurrenceConfig& block);

}  // namespace kvs::inline model
