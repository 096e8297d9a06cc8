// SPDX-License-Identifier: Apache-2.0
#include "model/model_json.h"

#include <algorithm>

#include "model/rope_angles.h"
#include "model/rope_json.h"

namespace kvs::inline model {

LayerSizes sizes_of(const ModelConfig& model, std::size_t AttentionConfig::*size) {
  std::vector<std::size_t> values;
  bool equal = true;
  for (const LayerConfig& layer : model.layer) {
    values.push_back(layer.has_cache() ? layer.attention.*size : 0);
    equal = equal && (!layer.has_cache() || values.back() == model.first_attention().*size);
  }
  return equal ? LayerSizes(model.first_attention().*size) : LayerSizes(std::move(values));
}

LayerSizes rotary_sizes_of(const ModelConfig& model) {
  std::vector<std::size_t> values;
  for (const RopeParameters& rope : model.ropes) values.push_back(rope.rotary_dim);
  const bool equal = std::ranges::all_of(values, [&](std::size_t value) { return value == values.front(); });
  return equal ? LayerSizes(model.rotary_dim()) : LayerSizes(std::move(values));
}

ModelRecord model_record(const ModelConfig& model, const std::string& sha256, std::uint64_t window) {
  const RopeParameters& first = model.ropes.front();
  ModelRecord record{.name = model.name,
                     .sha256 = sha256,
                     .architecture = model.architecture,
                     .layers = model.layers(),
                     .query_heads = sizes_of(model, &AttentionConfig::query_heads),
                     .kv_heads = sizes_of(model, &AttentionConfig::kv_heads),
                     .head_dim = sizes_of(model, &AttentionConfig::head_dim),
                     .rope = {.theta = first.theta,
                              .scaling = rope_scaling_json(first.scaling),
                              .rotary_dim = first.rotary_dim,
                              .window = window}};
  if (const auto without = model.layers_without_cache(); !without.empty()) record.layers_without_cache = without;
  std::vector<std::size_t> one_row;
  for (const std::size_t layer : model.cached_layers())
    if (model.layer[layer].attention.one_row) one_row.push_back(layer);
  if (!one_row.empty()) record.one_row_layers = std::move(one_row);
  if (model.has_recurrence()) record.recurrent_bytes = model.recurrent_values() * sizeof(float);
  if (model.ropes.size() > 1) record.rope.kinds = ropes_json(model.ropes);
  for (const RopeParameters& rope : model.ropes) {
    RopeAngles angles = rope_angles(rope, window);
    record.rope.frequencies.push_back(std::move(angles.frequencies));
    record.rope.factors.push_back(angles.factor);
  }
  for (const LayerConfig& layer : model.layer) record.rope.layer_kinds.push_back(layer.attention.rope);
  return record;
}

Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window) {
  ModelRecord record = model_record(model, sha256, window);
  record.one_row_layers.reset();  // these follow from the weights
  record.recurrent_bytes.reset();
  return to_json(record);
}

}  // namespace kvs::inline model
