#include "io/finite.h"

#include <cmath>

namespace kvs {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace kvs
