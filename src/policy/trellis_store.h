#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/row_store.h"

namespace kvs {

/// Rows of trellis-coded coefficients (RowKind::kTrellis).
/// @param books    [bits 0 … 8][state]
/// @param bits     [coefficient]
/// @param weights  [coefficient]: what a squared error costs; at most 1
RowStore trellis_store(std::span<const float> books, std::span<const std::size_t> bits, std::span<const float> weights);

}  // namespace kvs
