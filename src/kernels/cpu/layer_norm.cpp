// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/lanes.h"

namespace kvs::inline kernels {
namespace {

/// Returns Σ (x − shift), or Σ (x − shift)² with `kSquared`.
template <bool kSquared>
double sum_of_shifted(const float* x, std::size_t count, float shift) {
  cpu::Lanes sums[2] = {};
  std::size_t at = 0;
  const auto add = [&](cpu::Lanes value, std::size_t chain) { sums[chain] += kSquared ? value * value : value; };
  for (std::size_t chain = 0; at + cpu::kLanes <= count; at += cpu::kLanes, chain = 1 - chain)
    add(cpu::load(x + at) - shift, chain);
  if (at < count) add(cpu::load_part(x + at, count - at, shift) - shift, 0);
  return cpu::sum_of(sums[0]) + cpu::sum_of(sums[1]);
}

template <class T>
void normalise_row(const float* x, const float* gain, const float* bias, std::size_t count, float epsilon, T* out) {
  const auto n = static_cast<double>(count);
  const auto mean = static_cast<float>(sum_of_shifted<false>(x, count, 0) / n);
  const double variance = sum_of_shifted<true>(x, count, mean) / n;
  const auto inverse = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(epsilon)));
  const auto scaled = [&](cpu::Lanes value, cpu::Lanes g, cpu::Lanes b) { return (value - mean) * inverse * g + b; };
  std::size_t at = 0;
  for (; at + cpu::kLanes <= count; at += cpu::kLanes)
    cpu::store(out + at, scaled(cpu::load(x + at), cpu::load(gain + at), cpu::load(bias + at)));
  const std::size_t left = count - at;
  if (left > 0) {
    const auto part = [&](const float* from) { return cpu::load_part(from + at, left); };
    cpu::store_part(out + at, scaled(part(x), part(gain), part(bias)), left);
  }
}

template <class T>
void normalise(BackendView<const float, 2> x, const float* gain, const float* bias, float epsilon, T* out,
               int threads) {
  const std::size_t rows = x.extent(0), columns = x.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row)
    normalise_row(x.data() + row * columns, gain, bias, columns, epsilon, out + row * columns);
}

}  // namespace

void CpuBackend::layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                            BackendView<const float, 1> bias, float epsilon, Operand out) {
  cpu::require(gain.extent(0) == x.extent(1) && bias.extent(0) == x.extent(1), "layer_norm",
               "one gain and one bias per column");
  cpu::require(out.rows == x.extent(0) && out.columns == x.extent(1), "layer_norm", "out of x's shape");
  if (compute_type() == DType::kBF16)
    normalise(x, gain.data(), bias.data(), epsilon, static_cast<std::uint16_t*>(out.data), threads_);
  else
    normalise(x, gain.data(), bias.data(), epsilon, static_cast<float*>(out.data), threads_);
}

void CpuBackend::layer_norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain,
                                  BackendView<const float, 1> bias, float epsilon) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  cpu::require((gain.extent(0) == head_dim || gain.extent(0) == heads * head_dim) && bias.shape() == gain.shape(),
               "layer_norm_heads", "a gain and a bias of [head_dim] or [head · head_dim]");
  const std::size_t rows = members * heads * tokens, dim = head_dim, per_head = tokens, count = heads;
  const std::size_t stride = gain.extent(0) == dim ? 0 : dim;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float* const values = x.data() + row * dim;
    const std::size_t at = row / per_head % count * stride;
    normalise_row(values, gain.data() + at, bias.data() + at, dim, epsilon, values);
  }
}

}  // namespace kvs::inline kernels
