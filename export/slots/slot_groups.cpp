// SPDX-License-Identifier: Apache-2.0
#include "export/slots/slot_groups.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace kvs::inline exporting {
namespace {

/// A layer's place in the caches of a state.
struct Place {
  std::size_t cache, index;
};

/// Returns the group of a layer. @param places  [layer of the model]
SlotGroup group_of(const ConfigCodec& config, std::size_t layer, const std::map<std::size_t, Place>& places,
                   const std::string& where) {
  SlotGroup group;
  group.layers = {layer};
  group.cache = places.at(layer).cache;
  if (const auto of_config = static_cast<std::uint32_t>(layer); config.codes(of_config)) {
    group.codec = &config.group(of_config);
    group.layers.assign(group.codec->layers().begin(), group.codec->layers().end());
  }
  for (const std::size_t each : group.layers) {
    const Place& place = places.at(each);
    if (place.cache != group.cache)
      throw Error(ErrorCode::kUnsupported, where,
                  "found layers " + std::to_string(layer) + " and " + std::to_string(each) +
                      ", which share rows, in two caches: use a config of --layers-per-group 1");
    group.indices.push_back(place.index);
  }
  return group;
}

}  // namespace

std::size_t cell_values(const ModelConfig& model, std::size_t layer) {
  const AttentionConfig& attention = model.layer[layer].attention;
  return attention.kv_heads * attention.head_dim;
}

std::vector<std::vector<std::size_t>> layers_of_caches(const ModelConfig& model, std::size_t caches,
                                                       const std::string& where) {
  const std::vector<std::size_t> layers = model.cached_layers();
  if (caches == 1) return {layers};
  std::vector<std::vector<std::size_t>> of_caches(2);
  for (const std::size_t layer : layers) of_caches[model.window(layer) == 0 ? 0 : 1].push_back(layer);
  if (of_caches[0].empty() || of_caches[1].empty())
    throw Error(ErrorCode::kConflict, where,
                "found 2 caches, expected 1: not only some layers of the model have a window");
  return of_caches;
}

std::vector<SlotGroup> groups_of(const SlotCoder& coder, const std::vector<PackedCache>& caches,
                                 const std::string& where) {
  std::map<std::size_t, Place> places;
  for (std::size_t cache = 0; cache < caches.size(); ++cache)
    for (std::size_t index = 0; index < caches[cache].layers.size(); ++index)
      places[caches[cache].layers[index].layer] = {cache, index};
  std::vector<SlotGroup> groups;
  for (const auto& [layer, place] : places) {
    SlotGroup group = group_of(coder.config, layer, places, where);
    if (group.layers.front() != layer) continue;
    const PackedCache& cache = caches[group.cache];
    for (const std::size_t index : group.indices)
      if (cache.layers[index].type != cache.layers[group.indices.front()].type)
        throw Error(ErrorCode::kUnsupported, where,
                    "found " + cache.layers[index].type + " and " + cache.layers[group.indices.front()].type +
                        " in layers that share rows, expected one type");
    if (group.codec != nullptr)
      group.coded = cache.tokens - std::min<std::size_t>(cache.tokens, group.codec->group().recent);
    groups.push_back(std::move(group));
  }
  return groups;
}

const kvs_codec_inputs* SlotInputs::of(const GroupCodec& codec, const PackedCache& cache, std::size_t count) {
  if (codec.channels() == 0) return nullptr;
  const std::size_t first = cache.first_position, width = coder_.model.d_model;
  if (codec.channels() != width)
    throw Error(ErrorCode::kConflict, coder_.config.where() + ": prediction",
                "found " + std::to_string(codec.channels()) + " channels, expected " + std::to_string(width) +
                    " as the model's embeddings have");
  if (tokens_.size() < first + count)
    throw Error(ErrorCode::kInput, where_ + ": tokens",
                "found " + std::to_string(tokens_.size()) + " for " + std::to_string(first + count) +
                    " positions, expected one for each: rows are predicted from them");
  const auto tokens = tokens_.subspan(first, count);
  const auto vocabulary = static_cast<std::int32_t>(coder_.model.vocabulary);
  if (const auto bad = std::ranges::find_if(tokens, [&](std::int32_t id) { return id < 0 || id >= vocabulary; });
      bad != tokens.end())
    throw Error(ErrorCode::kInput, where_ + ": tokens",
                "found id " + std::to_string(*bad) + ", expected 0 to " + std::to_string(vocabulary - 1));
  if (first_ != first || count_ != count) rows_ = coder_.inputs(tokens);
  first_ = first;
  count_ = count;
  if (rows_.size() != count * width) throw Error(ErrorCode::kInternal, "slots", "inputs of another number of tokens");
  inputs_ = {
      .x = rows_.data(), .token_stride = width, .type = KVS_CODEC_F32, .channels = static_cast<std::uint32_t>(width)};
  return &inputs_;
}

static_assert(static_cast<int>(DType::kF32) == KVS_CODEC_F32 && static_cast<int>(DType::kF16) == KVS_CODEC_F16 &&
              static_cast<int>(DType::kBF16) == KVS_CODEC_BF16);

std::vector<kvs_codec_states> states_of(const SlotGroup& group, const ModelConfig& model, DType type,
                                        std::vector<LayerRows>& rows) {
  std::vector<kvs_codec_states> states;
  for (std::size_t n = 0; n < group.layers.size(); ++n) {
    const std::size_t head_dim = model.layer[group.layers[n]].attention.head_dim,
                      values = cell_values(model, group.layers[n]);
    states.push_back({.k = rows[n].keys.data(),
                      .v = rows[n].values.data(),
                      .k_token_stride = values,
                      .k_head_stride = head_dim,
                      .v_token_stride = values,
                      .v_head_stride = head_dim,
                      .type = static_cast<std::uint32_t>(type),
                      .rotated = 1});
  }
  return states;
}

}  // namespace kvs::inline exporting
