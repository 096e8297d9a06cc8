// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_layers.h"

#include <algorithm>

namespace kvs::inline model {
namespace {

constexpr std::string_view kQueryHeads = "attention.head_count", kKvHeads = "attention.head_count_kv",
                           kFeedForwardLength = "feed_forward_length";

void set_attention(const GgufKeys& keys, const GgufLayerSizes& sizes, std::size_t layer, ParsedConfig& parsed) {
  AttentionConfig& attention = parsed.config.layer[layer].attention;
  if (sizes.kv_heads[layer] == 0 || sizes.query_heads[layer] == 0) {
    if (parsed.architecture->recurrence == nullptr)
      keys.fail(ErrorCode::kInput, kKvHeads, "found 0 in layer " + std::to_string(layer) + ", expected 1 or more");
    attention = {};
    return;
  }
  attention.query_heads = sizes.query_heads[layer];
  attention.kv_heads = sizes.kv_heads[layer];
  complete_geometry(attention, parsed.config.d_model, keys.place("layer " + std::to_string(layer)),
                    {"embedding_length", kQueryHeads, kKvHeads, "attention.key_length"});
}

/// Every layer has a feed-forward block; or, in a family of single blocks, one block of any kind.
void check_blocks(const GgufKeys& keys, const ParsedConfig& parsed) {
  const RecurrenceRules* const rules = parsed.architecture->recurrence;
  const bool single = rules != nullptr && rules->single_blocks;
  for (std::size_t layer = 0; layer < parsed.config.layers(); ++layer) {
    const LayerConfig& each = parsed.config.layer[layer];
    const bool both = single && each.has_attention() && each.has_feed_forward();
    if (!both && (single || each.has_feed_forward())) continue;
    keys.fail(ErrorCode::kInput, kFeedForwardLength,
              "found " + std::to_string(each.feed_forward.d_ff) + " in layer " + std::to_string(layer) + ", expected " +
                  (both ? "0 in a layer with attention" : "1 or more in a layer without experts"));
  }
}

}  // namespace

std::size_t GgufLayerSizes::first_attention() const noexcept {
  std::size_t layer = 0;
  while (layer < kv_heads.size() && (kv_heads[layer] == 0 || query_heads[layer] == 0)) ++layer;
  return layer;
}

GgufLayerSizes read_gguf_layer_sizes(const GgufKeys& keys, const Architecture& row, std::size_t layers) {
  const auto read = [&](std::string_view key, std::uint64_t most) {
    return layers_may_differ(row) ? keys.by_layer(key, layers, most)
                                  : std::vector<std::size_t>(layers, keys.count(key, most));
  };
  GgufLayerSizes sizes{.query_heads = read(kQueryHeads, kMaxHeads), .kv_heads = {}, .d_ff = {}};
  sizes.kv_heads = keys.has(kKvHeads) ? read(kKvHeads, kMaxHeads) : sizes.query_heads;
  const bool experts_only = row.experts != nullptr && layers_may_differ(row) && !keys.has(kFeedForwardLength);
  sizes.d_ff = experts_only ? std::vector<std::size_t>(layers) : read(kFeedForwardLength, kMaxWidth);
  if (sizes.first_attention() == layers)
    keys.fail(ErrorCode::kUnsupported, kKvHeads, "found no layer with attention, expected at least one");
  return sizes;
}

void set_gguf_layer_sizes(const GgufKeys& keys, const GgufLayerSizes& sizes, ParsedConfig& parsed) {
  if (!layers_may_differ(*parsed.architecture)) return;
  for (std::size_t layer = 0; layer < parsed.config.layers(); ++layer) set_attention(keys, sizes, layer, parsed);
  check_blocks(keys, parsed);
  const RecurrenceRules* const rules = parsed.architecture->recurrence;
  if (rules != nullptr) rules->read_gguf(keys, parsed);
}

}  // namespace kvs::inline model
