// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/forward_ops.h"
#include "model/rope_angles.h"

namespace kvs::inline model {

/// cos and sin in backend memory.
struct RopeMemory {
  BackendTensor<float, 2> cosine, sine;  // [position, rotary_dim / 2]
  float factor = 1;
  RopeTable table() const { return {cosine.view(), sine.view(), factor}; }
};

/// Computes the angle as f32(position) · f32(frequency) rounded to f32, like Transformers. Its cos and sin are computed
/// in double, rounded, and multiplied by the factor in f32. Cost: positions · rotary_dim transcendental functions.
RopeMemory make_rope_memory(DeviceMemory& device, const RopeAngles& angles, std::size_t positions);

}  // namespace kvs::inline model
