// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "export/codec/config_codec.h"
#include "export/slots/packed_slot.h"
#include "model/config.h"

namespace kvs::inline exporting {

/// What slots are coded with.
struct SlotCoder {
  const ConfigCodec& config;
  const ModelConfig& model;  // of the config and of the slots
  std::string model_sha256;
  int threads = 1;
  /// Returns [token, channel]: the inputs of the first layer's projections. Called if rows are predicted from them.
  std::function<std::vector<float>(std::span<const std::int32_t> tokens)> inputs;
  std::function<void(std::size_t done, std::size_t groups)> progress = {};
};

/// Layers of a cache that are coded together, or one that the config does not code.
struct SlotGroup {
  std::vector<std::size_t> layers;    // of the model, ascending
  std::vector<std::size_t> indices;   // of the cache, likewise
  std::size_t cache = 0;              // of the state
  std::size_t coded = 0;              // tokens; the others stay as they are
  const GroupCodec* codec = nullptr;  // null if the config does not code the layer

  std::string stream_name() const { return "stream." + std::to_string(layers.front()); }
  bool is_predicted() const noexcept { return codec != nullptr && codec->channels() > 0; }
};

/// Returns the layers of each of one or two caches: all layers with a cache, or first those without a window.
/// @throws Error kConflict for two caches of a model without layers of both kinds
std::vector<std::vector<std::size_t>> layers_of_caches(const ModelConfig& model, std::size_t caches,
                                                       const std::string& where);

/// Returns the groups of a slot's caches. @param where  the file, for messages
/// @throws Error kUnsupported if layers of different caches share rows
std::vector<SlotGroup> groups_of(const SlotCoder& coder, const std::vector<PackedCache>& caches,
                                 const std::string& where);

/// The keys and values of a layer's tokens: [token, value], keys after RoPE in rotate-half order.
struct LayerRows {
  std::vector<std::byte> keys, values;
};

/// The inputs that the rows of a slot's tokens are predicted from.
class SlotInputs {
 public:
  /// @param tokens  [position]
  SlotInputs(const SlotCoder& coder, std::span<const std::int32_t> tokens, std::string where)
      : coder_(coder), tokens_(tokens), where_(std::move(where)) {}

  /// Returns the inputs of the first `count` tokens of a cache, valid until the next call; null without a prediction.
  /// @throws Error kInput if the slot has no ids of these tokens; kConflict for a config of other embeddings
  const kvs_codec_inputs* of(const GroupCodec& codec, const PackedCache& cache, std::size_t count);

 private:
  const SlotCoder& coder_;
  std::span<const std::int32_t> tokens_;
  std::string where_;
  std::size_t first_ = 0, count_ = 0;  // positions of rows_
  std::vector<float> rows_;
  kvs_codec_inputs inputs_{};
};

/// Returns the states of a group that the codec reads or writes. @param rows  [layer of the group], of equal types
std::vector<kvs_codec_states> states_of(const SlotGroup& group, const ModelConfig& model, DType type,
                                        std::vector<LayerRows>& rows);

/// Returns the number of values of a token's keys in a layer, which is that of its values.
std::size_t cell_values(const ModelConfig& model, std::size_t layer);

}  // namespace kvs::inline exporting
