// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "model/families/recurrence.h"
#include "model/gguf_keys.h"
#include "model/parsed_config.h"

// Source: llama.cpp's converter, which names the sizes of every kind of recurrent block like those of Mamba.

namespace kvs::inline model {
namespace {

RecurrenceConfig read_sizes(const GgufKeys& keys, RecurrenceConfig::Kind kind) {
  constexpr std::string_view kInner = "ssm.inner_size", kHeads = "ssm.time_step_rank", kGroups = "ssm.group_count";
  RecurrenceConfig block{.kind = kind,
                         .key_heads = keys.count(kGroups, kMaxHeads),
                         .value_heads = keys.count(kHeads, kMaxHeads),
                         .key_head_dim = keys.count("ssm.state_size", kMaxWidth),
                         .kernel = keys.count("ssm.conv_kernel", kMaxTaps)};
  const std::size_t inner = keys.count(kInner, kMaxWidth);
  const auto divides = [&](std::string_view key, std::size_t all, std::size_t parts) {
    if (all % parts != 0)
      keys.fail(ErrorCode::kInput, key,
                "found " + std::to_string(parts) + ", expected a divisor of " + std::to_string(all));
  };
  divides(kHeads, inner, block.value_heads);
  divides(kGroups, block.value_heads, block.key_heads);
  block.value_head_dim = inner / block.value_heads;
  return block;
}

/// Returns the layers of Gated DeltaNet: those that are listed, or all but every full_attention_interval-th.
std::vector<bool> delta_net_layers(const GgufKeys& keys, std::size_t layers) {
  constexpr std::string_view kListed = "attention.recurrent_layers", kInterval = "full_attention_interval";
  if (keys.has(kListed)) return keys.switches(kListed, layers);
  const std::size_t interval = keys.has(kInterval) ? keys.count(kInterval, kMaxLayers) : 4;
  std::vector<bool> recurrent(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) recurrent[layer] = (layer + 1) % interval != 0;
  return recurrent;
}

}  // namespace

void read_gguf_delta_net(const GgufKeys& keys, ParsedConfig& parsed) {
  RecurrenceConfig block = read_sizes(keys, RecurrenceConfig::Kind::kDeltaNet);
  block.norm_channels = block.value_head_dim;
  std::vector<LayerConfig>& layers = parsed.config.layer;
  const std::vector<bool> recurrent = delta_net_layers(keys, layers.size());
  if (std::ranges::find(recurrent, false) == recurrent.end())
    keys.fail(ErrorCode::kUnsupported, "full_attention_interval",
              "found no layer with attention, expected at least one");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!recurrent[layer]) continue;
    layers[layer].attention = {};
    layers[layer].recurrence = block;
  }
}

void read_gguf_tiled_delta_net(const GgufKeys& keys, ParsedConfig& parsed) {
  read_gguf_delta_net(keys, parsed);
  for (LayerConfig& layer : parsed.config.layer)
    layer.recurrence.tiled_heads = layer.recurrence.value_heads != layer.recurrence.key_heads;
}

RecurrenceConfig read_gguf_mamba2(const GgufKeys& keys, std::string_view norm) {
  RecurrenceConfig block = read_sizes(keys, RecurrenceConfig::Kind::kMamba2);
  block.gate_first = true;
  if (keys.file().find(norm) != nullptr) block.norm_channels = block.value_rows() / block.key_heads;
  return block;
}

void set_gguf_mixers(const RecurrenceConfig& block, ParsedConfig& parsed) {
  for (LayerConfig& layer : parsed.config.layer)
    if (!layer.has_attention()) layer.recurrence = block;
}

}  // namespace kvs::inline model
