// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrence.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/nearest.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {
namespace {

std::size_t kind_of(const JsonCursor& type, std::span<const std::string_view> kinds) {
  const auto found = std::ranges::find(kinds, std::string_view(type.string()));
  if (found != kinds.end()) return static_cast<std::size_t>(found - kinds.begin());
  const std::vector<std::string> supported(kinds.begin(), kinds.end());
  throw Error(ErrorCode::kUnsupported, type.place(),
              "found " + describe_json(type.value()) + ", supported are: " + listed(supported));
}

}  // namespace

std::vector<std::size_t> read_layer_types(const JsonCursor& root, std::size_t layers,
                                          std::span<const std::string_view> kinds, std::string_view key) {
  std::vector<std::size_t> types;
  if (!root.has(key)) return types;
  const JsonCursor list = root.at(key);
  if (list.array_size() != layers) list.fail("one type for each of " + std::to_string(layers) + " layers");
  for (std::size_t layer = 0; layer < layers; ++layer) types.push_back(kind_of(list.at(layer), kinds));
  return types;
}

void check_mixer_activation(const JsonCursor& root, std::string_view key) {
  if (!root.has(key)) return;
  const JsonCursor stated = root.at(key);
  if (stated.string() == "silu" || stated.string() == "swish") return;
  throw Error(ErrorCode::kUnsupported, stated.place(),
              "found " + describe_json(stated.value()) + ", supported in a model with recurrent layers is: silu");
}

void read_delta_net(const JsonCursor& root, ParsedConfig& parsed) {
  check_mixer_activation(root, "hidden_act");
  std::vector<LayerConfig>& layers = parsed.config.layer;
  RecurrenceConfig block{.kind = RecurrenceConfig::Kind::kDeltaNet,
                         .key_heads = hf_count(root, "linear_num_key_heads", kMaxHeads, 16),
                         .value_heads = hf_count(root, "linear_num_value_heads", kMaxHeads, 32),
                         .key_head_dim = hf_count(root, "linear_key_head_dim", kMaxWidth, 128),
                         .value_head_dim = hf_count(root, "linear_value_head_dim", kMaxWidth, 128),
                         .kernel = hf_count(root, "linear_conv_kernel_dim", kMaxTaps, 4)};
  block.norm_channels = block.value_head_dim;
  if (block.value_heads % block.key_heads != 0)
    throw Error(ErrorCode::kInput, root.place(),
                "found linear_num_key_heads " + std::to_string(block.key_heads) + " and linear_num_value_heads " +
                    std::to_string(block.value_heads) + ", expected the first to divide the second");
  const std::vector<std::size_t> types = read_layer_types(root, layers.size(), kMixerKinds);
  const std::size_t interval = hf_count(root, "full_attention_interval", kMaxLayers, 4);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const bool linear = types.empty() ? (layer + 1) % interval != 0 : is_recurrent(types[layer]);
    if (!linear) continue;
    layers[layer].attention = {};
    layers[layer].recurrence = block;
  }
}

namespace {

/// Reads channels per head, which may be "auto" or missing.
std::size_t mamba_head_dim(const JsonCursor& root, const Mamba2Keys& keys, std::size_t heads) {
  const bool stated = root.has(keys.head_dim) && !root.at(keys.head_dim).value().is_string();
  const std::size_t inner =
      !keys.inner.empty() && (root.has(keys.inner) || keys.inner_default != 0)
          ? hf_count(root, keys.inner, kMaxWidth, keys.inner_default)
          : hf_count(root, "mamba_expand", kMaxHeads, 2) * hf_count(root, "hidden_size", kMaxWidth);
  const std::size_t head_dim = stated ? hf_count(root, keys.head_dim, kMaxWidth) : inner / heads;
  if (head_dim * heads != inner)
    throw Error(ErrorCode::kInput, root.place(),
                "found " + std::string(keys.heads) + " " + std::to_string(heads) + " of " + std::to_string(head_dim) +
                    " channels, expected " + std::to_string(inner) + " in all");
  return head_dim;
}

/// Returns a number, which may be Infinity as Python or Transformers writes it.
float limit(const JsonCursor& value) {
  constexpr std::string_view kWritten = "__float__";
  const bool object = value.value().is_object() && value.has(kWritten);
  if (object && value.at(kWritten).string() == "Infinity") return std::numeric_limits<float>::infinity();
  const auto* const number = value.value().get_ptr<const double*>();
  if (number != nullptr && *number == std::numeric_limits<double>::infinity())
    return std::numeric_limits<float>::infinity();
  return value.value() == 0 ? 0.0F : static_cast<float>(value.positive_f32());
}

}  // namespace

RecurrenceConfig read_mamba2(const JsonCursor& root, const Mamba2Keys& keys) {
  RecurrenceConfig block{.kind = RecurrenceConfig::Kind::kMamba2,
                         .key_heads = hf_count(root, keys.groups, kMaxHeads, keys.groups_default),
                         .value_heads = hf_count(root, keys.heads, kMaxHeads, keys.heads_default),
                         .key_head_dim = hf_count(root, keys.state, kMaxWidth, keys.state_default),
                         .kernel = hf_count(root, keys.kernel, kMaxTaps, 4),
                         .gate_first = true};
  block.value_head_dim = keys.head_dim_default != 0 ? hf_count(root, keys.head_dim, kMaxWidth, keys.head_dim_default)
                                                    : mamba_head_dim(root, keys, block.value_heads);
  if (block.value_heads % block.key_heads != 0)
    throw Error(ErrorCode::kInput, root.place(),
                "found " + std::string(keys.groups) + " " + std::to_string(block.key_heads) + " and " +
                    std::string(keys.heads) + " " + std::to_string(block.value_heads) +
                    ", expected the first to divide the second");
  block.norm_channels = block.value_rows() / block.key_heads;
  return block;
}

void read_step_limits(const JsonCursor& root, RecurrenceConfig& block) {
  constexpr std::string_view kKey = "time_step_limit";
  if (!root.has(kKey)) return;
  const JsonCursor limits = root.at(kKey);
  if (limits.array_size() != 2) limits.fail("a least and a greatest step");
  block.least_step = limit(limits.at(std::size_t{0}));
  block.most_step = limit(limits.at(std::size_t{1}));
  if (block.least_step > block.most_step) limits.fail("a least step, then a greatest step");
}

}  // namespace kvs::inline model
