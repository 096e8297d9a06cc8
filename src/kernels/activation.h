// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kvs::inline kernels {

/// Nonlinearity of a feed-forward block: x · sigmoid(x), GELU in its tanh approximation, GELU with the error function,
/// GELU as x · sigmoid(1.702 x), max(x, 0), max(x, 0)². Source: Hendrycks and Gimpel (2016), arXiv:1606.08415,
/// section 2.
enum class Activation : std::uint8_t { kSilu, kGeluTanh, kGeluErf, kGeluSigmoid, kRelu, kReluSquared };

}  // namespace kvs::inline kernels
