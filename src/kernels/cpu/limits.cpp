// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline kernels {

void CpuBackend::clamp(BackendView<float, 4> x, float limit) {
  const std::size_t count = x.size();
#pragma omp parallel for simd num_threads(threads_) schedule(static)
  for (std::size_t i = 0; i < count; ++i) x.data()[i] = std::clamp(x.data()[i], -limit, limit);
}

void CpuBackend::scale_tokens(BackendView<float, 4> x, std::span<const float> factors) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  cpu::require(factors.size() == tokens, "scale_tokens", "a factor for each token");
  const std::size_t rows = members * heads * tokens, dim = head_dim;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float* const values = x.data() + row * dim;
    const float factor = factors[row % factors.size()];
    for (std::size_t i = 0; i < dim; ++i) values[i] *= factor;
  }
}

}  // namespace kvs::inline kernels
