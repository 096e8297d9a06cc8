// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/calibration_ops.h"
#include "kernels/cuda/context.h"
#include "kernels/rope_operands.h"

namespace kvs::cuda {

/// Writes the components of one head's tokens: [token, component, chunk].
void fill_components(const Context& context, const RopeOperands& in, RopeSide side, std::size_t head, double* out);

/// See CalibrationOps::rope_grams. Uses as many bytes of device memory as gram uses of host memory.
std::unique_ptr<RopeGrams> make_rope_grams(const Context& context, TensorView<double, 4> gram);
/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(const Context& context, const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cuda
