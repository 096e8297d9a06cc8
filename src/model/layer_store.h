#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "model/model.h"

namespace kvs {

/// A model's layers in a backend's memory. Those that a budget has no room for are loaded anew in every pass, each one
/// while the layer before it computes.
class LayerStore {
 public:
  /// Loads one layer into a backend's memory. Called from another thread with a backend of its own.
  using Load = std::function<LayerWeights(Backend& backend, std::size_t layer)>;

  /// Loads the layers that stay. All layers are taken to be as large as the first.
  /// @param budget  bytes of the backend's memory for layers. Streaming wants two layers' room beside those that stay;
  ///                with less, nothing is loaded ahead
  /// @param loaded  called after each layer that stays, with their number
  /// @throws Error kEnvironment if not even one layer fits the budget; what `load` throws.
  LayerStore(Backend& backend, std::size_t layers, Load load, std::size_t budget,
             const std::function<void(std::size_t)>& loaded);
  ~LayerStore();

  /// The reference holds until another layer is asked for. Waits for the device before a layer's memory is reused.
  const LayerWeights& at(std::size_t layer);
  const WeightPlacement& placement() const noexcept { return placement_; }
  /// Bytes of the layers that stay.
  std::size_t bytes() const noexcept;

 private:
  void stream_from(std::size_t first, bool ahead);
  void turn_to(std::size_t layer);
  void load_ahead(std::size_t layer);
  LayerWeights load_whole(std::size_t layer);

  Backend* backend_;
  std::size_t layers_;
  Load load_;
  WeightPlacement placement_;
  std::vector<LayerWeights> staying_;
  // Streaming: a backend for the thread that loads, which owns the memory of the layers below it here.
  std::unique_ptr<Backend> loader_;
  bool ahead_ = false;
  std::optional<LayerWeights> current_;
  std::size_t current_layer_ = 0, next_layer_ = 0;
  std::future<LayerWeights> next_;
};

}  // namespace kvs
