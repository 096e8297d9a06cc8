#include "io/finite.h"

#include <cmath>

namespace kvs {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json exponential_or_null(double exponent) {
  const double value = std::exp(exponent);
  return std::isnormal(value) ? Json(value) : Json();
}

}  // namespace kvs
