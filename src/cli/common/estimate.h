#pragma once

#include "run/estimate.h"

namespace kvs {
inline void announce(const Estimate& estimate, Backend& backend, const RunOptions& run) {
  print_estimate(estimate, backend, run);
}
}  // namespace kvs
