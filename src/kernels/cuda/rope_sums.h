#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/context.h"
#include "kernels/rope_operands.h"

namespace kvs::cuda {

/// Writes the components of one head's tokens: [token, component, chunk].
void fill_components(const Context& context, const RopeOperands& in, RopeSide side, std::size_t head, double* out);

/// See CalibrationOps::accumulate_rope_gram.
void accumulate_rope_gram(const Context& context, const RopeOperands& in, TensorView<double, 3> gram);
/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(const Context& context, const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cuda
