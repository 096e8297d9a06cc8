// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {

/// How llama.cpp orders the keys or the values of a layer.
struct CellOrder {
  std::size_t cells = 0, values = 0;  // values of a cell
  bool transposed = false;            // [value, cell] instead of [cell, value]
  Interleaving pairs = {};            // of keys; head_dim 0: rotate-half order
};

/// Returns rows [token, value] in rotate-half order. @param cells  [token]: the cell of each
std::vector<std::byte> gathered_rows(std::span<const std::byte> stored, DType type, const CellOrder& order,
                                     std::span<const std::size_t> cells);
/// The inverse of gathered_rows() with one cell for each token, in order.
std::vector<std::byte> stored_rows(std::span<const std::byte> rows, DType type, const CellOrder& order);

}  // namespace kvs::inline exporting
