// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "caches/kv_types.h"
#include "export/exporter.h"

namespace kvs::inline exporting {

/// The layers of a config whose keys and values are both in one type with scales.
struct ScaledLayers {
  struct Layer {
    std::size_t index;
    RowKind kind;             // kE4m3 or kNvFp4
    std::vector<float> k, v;  // scales: one, or with by_head [kv_head]
  };
  std::vector<Layer> layers;         // ascending
  std::vector<std::size_t> skipped;  // with a KV cache, at 16 bits
  bool by_head = false;              // true: the heads of some layer have different scales

  /// Returns true if all layers with a KV cache have one type.
  bool are_alike() const;
  std::vector<std::size_t> indices() const;
};

/// Returns the layers in fp8. @throws Error kUnsupported if there are none, or if a layer has another type
ScaledLayers fp8_layers_of(const ExportJob& job);
/// Returns the layers in fp8 or nvfp4, with one scale each. @throws Error kUnsupported also for scales by head
ScaledLayers map_layers_of(const ExportJob& job);

}  // namespace kvs::inline exporting
