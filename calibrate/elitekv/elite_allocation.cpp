// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/elite_allocation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "calibrate/elitekv/jlrd.h"
#include "core/error.h"

namespace kvs::inline calibrate {

std::size_t standard_rank_step(const EliteShape& shape) noexcept {
  return 2 * shape.kv_heads * shape.head_dim < 1024 ? 8 : 128;
}

std::vector<EliteAllocation> elite_allocations(const EliteShape& shape, double ratio, bool allow_more_parameters,
                                               std::size_t step) {
  if (!(ratio > 0 && ratio <= 1))
    throw Error(ErrorCode::kUsage, "cache ratio",
                "found " + std::to_string(ratio) + ", expected more than 0 and at most 1");
  const std::size_t full = 2 * shape.kv_heads * shape.head_dim;
  if (step == 0) step = standard_rank_step(shape);
  const double wanted = ratio * static_cast<double>(full);
  const auto values = static_cast<std::size_t>(std::llround(wanted));
  if (std::abs(wanted - static_cast<double>(values)) > 1e-6 * wanted) return {};  // not a whole number
  std::vector<EliteAllocation> result;
  for (std::size_t r = 1; r < shape.chunks; ++r) {
    const std::size_t rotated = 2 * r * shape.kv_heads;
    if (rotated >= values || (values - rotated) % step != 0) continue;
    const std::size_t d_ckv = values - rotated;
    // Above full rank, further columns would be zeros, for any number of parameters.
    const std::size_t rows = shape.kv_heads * (2 * shape.head_dim - 2 * r), rank = std::min(rows, shape.d_model);
    const std::size_t bound = no_extra_parameters_rank(shape.d_model, shape.kv_heads, shape.head_dim, r);
    if (d_ckv <= (allow_more_parameters ? rank : bound)) result.push_back({r, d_ckv});
  }
  return result;
}

}  // namespace kvs::inline calibrate
