#pragma once

#include <cstdint>

namespace kvs {

/// A feed-forward block's nonlinearity: x · sigmoid(x), GELU by its tanh approximation, GELU by the error function.
/// Source: Hendrycks and Gimpel (2016), arXiv:1606.08415, section 2.
enum class Activation : std::uint8_t { kSilu, kGeluTanh, kGeluErf };

}  // namespace kvs
