#pragma once

#include <memory>
#include <vector>

#include "caches/kv_types.h"
#include "calibrate/transform/cache.h"
#include "kernels/coding_ops.h"

namespace kvs::inline calibrate {

/// A layer's data in a device's memory, and how its codes are stored.
class TransformProducts {
 public:
  TransformProducts(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape);

  using Weights = std::vector<std::unique_ptr<Weight>>;

  TransformShape shape;
  TransformRows rows;
  std::size_t sinks, recent;
  double threshold, outliers;
  std::vector<float> weights;  // [coefficient]
  /// kLayer: `k` holds rows of all coefficients. kHead: rows of keys before RoPE, and of the values' coefficients.
  KvTypes types;
  /// In f32. kLayer: of each head's keys, then of each head's values, [coefficient, channel]; one synthesis of all.
  /// kHead: of each head's values.
  Weights analysis, synthesis;
  Weights results;  // made by make_results()

  /// kHead: makes the synthesis in the backend's compute type, which is applied to the attention's results.
  void make_results(Backend& backend, const TransformLayer& layer);

 private:
  void make_of_layer(CodingOps& ops, const TransformLayer& layer);
  void make_of_heads(CodingOps& ops, const TransformLayer& layer);
};

}  // namespace kvs::inline calibrate
