#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/row_format.h"

namespace kvs {

/// How rows of keys, or of values, are held.
struct RowType {
  RowFormat format = {};
  std::vector<float> scales = {};  // StoredRows::scales; of RowKind::kE4m3 also one for all heads
};

/// How a layer holds its keys and values.
struct KvTypes {
  RowType k, v;
};

class Parameters;

/// What a cache has to know of a model.
struct CacheShape {
  std::size_t kv_heads = 0, head_dim = 0;
  /// ggml keeps this family's W_k, and so its keys, with the two channels of a RoPE chunk side by side.
  bool adjacent_pairs = false;
  std::vector<std::size_t> windows = {};  // of each layer, 0: none; empty: no layer has one
};

/// Whether `type` takes this name.
bool is_kv_type(std::string_view name) noexcept;

/// `type`, `type_k`, `type_v`, `rotate`, `layout`, `scale_k`, `scale_v` and `type_skip_layers` of the layer that
/// `parameters` have selected: the caches of inference engines, bit for bit as they write and read them
/// (docs/stores.md).
/// @throws Error as Parameters; kUnsupported for a head_dim that does not divide into a kind's blocks.
KvTypes read_kv_types(Parameters& parameters, std::size_t layer, const CacheShape& shape);

/// The same for rows that are not those of a head, such as EliteKV's.
/// @throws Error also kUnsupported for a kind that rotates whole heads; for keys held otherwise than values, since a
/// row is both.
KvTypes read_row_types(Parameters& parameters, std::size_t layer);

}  // namespace kvs
