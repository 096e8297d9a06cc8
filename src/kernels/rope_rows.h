// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace kvs::inline kernels {

/// Writes cos and sin of positions [first, first + count), [position, chunk], in host memory. The angle is
/// f32(position) · f32(frequency) rounded to f32, like in Transformers. Its cos and sin are computed in double,
/// rounded, and multiplied by the factor in f32. Cost: 2 · count · chunks transcendental functions.
/// @param frequencies  [chunk], radians per token
void write_rope_rows(std::span<const double> frequencies, double factor, std::size_t first, std::size_t count,
                     float* cosine, float* sine);

}  // namespace kvs::inline kernels
