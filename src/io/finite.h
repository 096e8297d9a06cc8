#pragma once

#include "io/json.h"

namespace kvs {

/// `value`, or null where arithmetic has left the range of a double: a text has no infinity.
Json finite_or_null(double value);

}  // namespace kvs
