// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>

namespace kvs::inline io {

/// Returns `value`, or nullopt if it is not finite, because JSON has no infinity.
inline std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}
/// Returns e^exponent, or nullopt if it overflows a double or is below the smallest normal double.
inline std::optional<double> if_normal_exponential(double exponent) {
  const double value = std::exp(exponent);
  return std::isnormal(value) ? std::optional(value) : std::nullopt;
}

}  // namespace kvs::inline io
