// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/model.h"

namespace kvs::inline model {

/// A model's layers in a backend's memory. Layers that exceed the budget are loaded again in every pass, each one while
/// the previous layer computes.
class LayerStore {
 public:
  /// Loads one layer into a backend's memory. Called from another thread, with a backend of its own.
  using Load = std::function<LayerWeights(Backend& backend, std::size_t layer)>;

  /// Loads the resident layers.
  /// @param values  number of weights of each layer. The bytes of a layer follow from the bytes of the first
  /// @param budget  bytes of the backend's memory for layers. Streaming needs room for two further layers; with less,
  /// nothing is loaded ahead
  /// @param loaded  called after each resident layer, with their number
  /// @throws Error kEnvironment if not even one layer fits the budget; what `load` throws.
  LayerStore(Backend& backend, std::span<const double> values, Load load, std::size_t budget,
             const std::function<void(std::size_t)>& loaded);
  ~LayerStore();

  /// The reference is valid until another layer is requested. Waits for the device before a layer's memory is reused.
  /// A streamed layer is a place of turns/turns.h: calls that run in turns use it one after the other while it is held.
  const LayerWeights& at(std::size_t layer);
  const WeightPlacement& placement() const noexcept { return placement_; }
  /// Bytes of the resident layers and of the memory for streamed ones.
  std::size_t bytes() const noexcept;

 private:
  std::size_t place(std::span<const double> values, std::size_t budget);
  void stream_from(std::size_t first, bool ahead);
  void turn_to(std::size_t layer);
  void load_ahead(std::size_t layer);
  LayerWeights load_whole(std::size_t layer);

  Backend* backend_;
  std::size_t layers_;
  Load load_;
  WeightPlacement placement_;
  std::vector<LayerWeights> staying_;
  // Streaming: the backend of the loading thread. It owns the memory of the layers declared below it.
  std::unique_ptr<Backend> loader_;
  bool ahead_ = false;
  std::optional<LayerWeights> current_;
  std::size_t current_layer_ = 0, next_layer_ = 0;
  std::future<LayerWeights> next_;
};

}  // namespace kvs::inline model
