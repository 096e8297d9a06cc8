#pragma once

#include <cmath>
#include <optional>

#include "io/json.h"

namespace kvs {

/// Returns `value`, or null if it is not finite, because JSON has no infinity.
Json finite_or_null(double value);
/// The same as a member of a struct.
inline std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}
/// e^exponent, or null where no double holds it: beyond the largest, or below the least with all its digits.
Json exponential_or_null(double exponent);
/// The same as a member of a struct.
inline std::optional<double> if_normal_exponential(double exponent) {
  const double value = std::exp(exponent);
  return std::isnormal(value) ? std::optional(value) : std::nullopt;
}

}  // namespace kvs
