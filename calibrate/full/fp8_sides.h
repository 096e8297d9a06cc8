#pragma once

#include <functional>
#include <vector>

#include "calibrate/full/fp8_scales.h"
#include "io/json.h"
#include "model/config.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// The scales of the keys after RoPE and of the values of every layer with a KV cache.
class Fp8Sides {
 public:
  /// @param model    must outlive this
  /// @param by_head  true: one scale for each KV head
  Fp8Sides(const ModelConfig& model, ExtremeRule rule, bool by_head);

  /// @param done  called with the number of documents done
  void measure(StateSource& source, const std::function<void(std::size_t)>& done);
  /// Returns the parameters of a config of `full`.
  Json parameters() const;
  /// Returns `largest_k` and `largest_v`: [layer with a KV cache].
  Json largest() const;

 private:
  using Layers = std::vector<Fp8Scales>;
  Json scales(const Layers& layers) const;

  const ModelConfig& model_;
  bool by_head_;
  std::vector<std::size_t> layers_;  // with a KV cache
  Layers keys_, values_;             // by index in layers_
};

}  // namespace kvs::inline calibrate
