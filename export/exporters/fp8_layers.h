#pragma once

#include <cstddef>
#include <vector>

#include "caches/kv_types.h"
#include "export/exporter.h"

namespace kvs::inline exporting {

/// The layers of a config whose keys and values are both in fp8.
struct Fp8Layers {
  struct Layer {
    std::size_t index;
    std::vector<float> k, v;  // scales: one, or with by_head [kv_head]
  };
  std::vector<Layer> layers;         // ascending
  std::vector<std::size_t> skipped;  // with a KV cache, at 16 bits
  bool by_head = false;              // true: the heads of some layer have different scales
};

/// @throws Error kUnsupported if no layer is in fp8, or if a layer has another type
Fp8Layers fp8_layers_of(const ExportJob& job);

}  // namespace kvs::inline exporting
