// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/lanes.h"

namespace kvs::inline kernels {
namespace {

double sum_of_squares(const float* x, std::size_t count) {
  cpu::Lanes sums[4] = {};  // four chains, so that additions do not wait for each other
  std::size_t at = 0;
  for (std::size_t chain = 0; at + cpu::kLanes <= count; at += cpu::kLanes, chain = (chain + 1) % 4) {
    const cpu::Lanes value = cpu::load(x + at);
    sums[chain] += value * value;
  }
  const cpu::Lanes rest = at < count ? cpu::load_part(x + at, count - at) : cpu::Lanes{};
  return cpu::sum_of(sums[0] + sums[1]) + cpu::sum_of(sums[2] + sums[3]) + cpu::sum_of(rest * rest);
}

float inverse_root(double squares, std::size_t count, float epsilon) {
  return static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(count) + static_cast<double>(epsilon)));
}

/// out = x · inverse · gain.
template <class T>
void scale_row(const float* x, const float* gain, std::size_t count, float inverse, T* out) {
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes)
    cpu::store(out + at, cpu::load(x + at) * inverse * cpu::load(gain + at));
  const std::size_t left = count - at;
  if (left > 0)
    cpu::store_part(out + at, cpu::load_part(x + at, left) * inverse * cpu::load_part(gain + at, left), left);
}

template <class T>
void normalise(BackendView<const float, 2> x, const float* gain, float epsilon, T* out, int threads) {
  const std::size_t rows = x.extent(0), columns = x.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * columns;
    scale_row(from, gain, columns, inverse_root(sum_of_squares(from, columns), columns, epsilon), out + row * columns);
  }
}

}  // namespace

void CpuBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon, Operand out) {
  cpu::require(gain.extent(0) == x.extent(1), "rms_norm", "one gain per column");
  cpu::require(out.rows == x.extent(0) && out.columns == x.extent(1), "rms_norm", "out of x's shape");
  if (compute_type() == DType::kBF16)
    normalise(x, gain.data(), epsilon, static_cast<std::uint16_t*>(out.data), threads_);
  else
    normalise(x, gain.data(), epsilon, static_cast<float*>(out.data), threads_);
}

void CpuBackend::rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                              BackendView<float, 2> sum) {
  cpu::require(gain.extent(0) == x.extent(1), "rms_norm_add", "one gain per column");
  cpu::require(sum.shape() == x.shape(), "rms_norm_add", "a sum of x's shape");
  const std::size_t rows = x.extent(0), columns = x.extent(1);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * columns;
    float* to = sum.data() + row * columns;
    const float inverse = inverse_root(sum_of_squares(from, columns), columns, epsilon);
#pragma omp simd
    for (std::size_t i = 0; i < columns; ++i) to[i] += from[i] * inverse * gain.data()[i];
  }
}

void CpuBackend::norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  cpu::require(gain.extent(0) == head_dim || gain.extent(0) == heads * head_dim, "norm_heads",
               "a gain of [head_dim] or [head · head_dim]");
  // Number of heads that share one mean, and the distance between heads of one token.
  const std::size_t together = gain.extent(0) / head_dim, groups = heads / together, stride = tokens * head_dim;
  const std::size_t rows = members * groups * tokens, dim = head_dim, per_head = tokens;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float* first = x.data() + row / per_head * together * stride + row % per_head * dim;
    double squares = 0;
    for (std::size_t head = 0; head < together; ++head) squares += sum_of_squares(first + head * stride, dim);
    const float inverse = inverse_root(squares, together * dim, epsilon);
    for (std::size_t head = 0; head < together; ++head)
      scale_row(first + head * stride, gain.data() + head * dim, dim, inverse, first + head * stride);
  }
}

}  // namespace kvs::inline kernels
