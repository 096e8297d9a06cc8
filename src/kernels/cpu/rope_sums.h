// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor_view.h"
#include "kernels/rope_operands.h"

namespace kvs::cpu {

/// See RopeGrams::add; gram: [query_head, chunk, chunk].
void accumulate_rope_gram(const RopeOperands& in, TensorView<double, 3> gram);
/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cpu
