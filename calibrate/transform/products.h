// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "caches/kv_types.h"
#include "calibrate/transform/cache.h"
#include "kernels/coding_ops.h"

namespace kvs::inline calibrate {

class LevelTrellis;

/// The data of a layer, or of a group of layers, in a device's memory, and how its codes are stored.
class TransformProducts {
 public:
  TransformProducts(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape);

  using Weights = std::vector<std::unique_ptr<Weight>>;

  TransformShape shape;  // of each layer
  TransformRows rows;
  std::size_t sinks, recent;
  double threshold, outliers;
  std::vector<float> weights;                   // [coefficient]
  std::vector<std::uint8_t> scales;             // the storage form: TransformLayer::scales
  std::shared_ptr<const EntropyModel> entropy;  // null unless in the storage form
  std::shared_ptr<const LevelTrellis> trellis;  // likewise
  /// kLayer: `k` holds rows of all coefficients. kHead: rows of keys before RoPE, and of the values' coefficients.
  KvTypes types;
  /// In f32. kLayer: of each layer of each head's keys, then of each head's values, [coefficient, channel]; one
  /// synthesis of each layer. kHead: of each head's values.
  Weights analysis, synthesis;
  Weights results;  // made by make_results()
  /// The prediction from TokenInputs, in f32: what it takes from a row, [coefficient, channel], and what it adds to the
  /// states of each layer, [value, channel].
  std::unique_ptr<Weight> predicted_rows;
  Weights predictions;

  /// Returns the number of layers that share a row.
  std::size_t layers() const noexcept { return rows == TransformRows::kLayer ? synthesis.size() : 1; }
  /// kHead: makes the synthesis in the backend's compute type, which is applied to the attention's results.
  void make_results(Backend& backend, const TransformLayer& layer);

 private:
  void make_of_layer(CodingOps& ops, const TransformLayer& layer);
  void make_predictions(CodingOps& ops, const TransformLayer& layer);
  void make_of_heads(CodingOps& ops, const TransformLayer& layer);
};

}  // namespace kvs::inline calibrate
