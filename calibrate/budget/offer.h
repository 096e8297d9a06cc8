// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "io/json.h"

namespace kvs::inline calibrate {

/// How the storage types of a cache may differ between layers in an engine.
enum class TypesByLayer : std::uint8_t {
  kOne,      // one type of keys and one of values in all layers
  kSkipped,  // one type, and 16 bits in some layers
  kEnds,     // other types in the first N layers and in the last N
  kAny,      // each layer has its own
};

/// The storage types of the full cache that an engine executes.
struct OfferedTypes {
  std::vector<Json> settings;  // of all layers, as for Parameters
  TypesByLayer by_layer = TypesByLayer::kOne;
};

}  // namespace kvs::inline calibrate
