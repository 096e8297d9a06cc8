#pragma once

#include "io/json.h"

namespace kvs {

/// `value`, or null where arithmetic has left the range of a double: a text has no infinity.
Json finite_or_null(double value);
/// e^exponent, or null where no double holds it: beyond the largest, or below the least with all its digits.
Json exponential_or_null(double exponent);

}  // namespace kvs
