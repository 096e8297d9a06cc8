// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/tensor_view.h"

namespace kvs::inline kernels {

/// Resamples every channel along the token axis. Takes the orthonormal DCT-II of N tokens, reads `count` coefficients
/// from `first_bin` on as the spectrum of `count` tokens (orthonormal inverse), and multiplies by `scale`. In double.
/// @param states  [N, channel] host memory;  @param out  [count, channel] host memory, not overlapping `states`
/// @throws Error kUsage unless 1 ≤ count and first_bin + count ≤ N.   Cost O(channel · N log N). Thread-safe.
void dct_resample(TensorView<const float, 2> states, std::size_t first_bin, double scale, TensorView<float, 2> out);

}  // namespace kvs::inline kernels
