// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope_rows.h"

#include <cmath>

namespace kvs::inline kernels {

void write_rope_rows(std::span<const double> frequencies, double factor, std::size_t first, std::size_t count,
                     float* cosine, float* sine) {
  const auto scale = static_cast<float>(factor);
  for (std::size_t position = first; position < first + count; ++position)
    for (const double frequency : frequencies) {
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      *cosine++ = scale * static_cast<float>(std::cos(static_cast<double>(angle)));
      *sine++ = scale * static_cast<float>(std::sin(static_cast<double>(angle)));
    }
}

}  // namespace kvs::inline kernels
