// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/row_format.h"

namespace kvs::inline caches {

/// How rows of keys, or of values, are stored.
struct RowType {
  RowFormat format = {};
  std::vector<float> scales = {};  // StoredRows::scales; of is_scaled() also one for all heads
  bool operator==(const RowType&) const = default;
};

/// How a layer stores its keys and values.
struct KvTypes {
  RowType k, v;
  bool one_row = false;  // keys and values come from one row, so that rows that are not coded are stored once
  bool latent = false;   // the row of a key is also that of the value: rows of any type are stored once
  bool operator==(const KvTypes&) const = default;
};

class Parameters;
struct CacheShape;
struct LayerShape;

/// Returns the types of rows that are not coded.
KvTypes plain_types(const LayerShape& layer);

/// Returns true if `type` accepts this name.
bool is_kv_type(std::string_view name) noexcept;

/// Reads `type`, `type_k`, `type_v`, `rotate`, `layout`, `scale_k`, `scale_v` and `type_skip_layers` of the layer
/// selected in `parameters`: the caches of inference engines, bit for bit as they write and read them (docs/stores.md).
/// @param layer  with a cache of its own
/// @throws Error like Parameters; kUnsupported for a head_dim that does not divide into a type's blocks. In latent
/// attention keys and values of different types are refused, because a row is both.
KvTypes read_kv_types(Parameters& parameters, std::size_t layer, const CacheShape& shape);

/// Like read_kv_types(), for rows that are not those of a head, such as EliteKV's.
/// @throws Error also kUnsupported for a type that rotates whole heads, and for keys and values of different types,
/// because a row is both.
KvTypes read_row_types(Parameters& parameters, std::size_t layer);

}  // namespace kvs::inline caches
