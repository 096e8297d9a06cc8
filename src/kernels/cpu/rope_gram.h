#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor_view.h"
#include "kernels/backend.h"

namespace kvs::cpu {

/// See CalibrationOps::accumulate_rope_gram.
void accumulate_rope_gram(BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
                          std::size_t first_position, TensorView<double, 3> gram);

/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
                              std::size_t first_position, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cpu
