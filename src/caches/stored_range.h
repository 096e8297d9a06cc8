// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/attention_ops.h"

namespace kvs::inline caches {

/// Returns rows [first, first + count) of every head, in place: the stride between heads does not change.
inline StoredRows stored_range(StoredRows rows, std::size_t first, std::size_t count) noexcept {
  rows.data = rows.row(0, 0, first);
  rows.count = count;
  return rows;
}

}  // namespace kvs::inline caches
