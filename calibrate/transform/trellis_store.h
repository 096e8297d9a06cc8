// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "caches/kv_types.h"

namespace kvs::inline calibrate {

/// Returns the type of rows of trellis-coded values (RowKind::kTrellis).
/// @param books   [bits 0 … 8][state]
/// @param values  [head, value]; the bits of all heads must have the same sum
RowType trellis_store(std::span<const float> books, std::span<const TrellisValue> values, std::size_t heads = 1);

/// Returns the values of one head's coefficients: without offsets, of unit variance.
/// @param bits     [coefficient]
/// @param weights  [coefficient]: cost of a squared error; at most 1
std::vector<TrellisValue> trellis_coefficients(std::span<const std::size_t> bits, std::span<const float> weights);

}  // namespace kvs::inline calibrate
