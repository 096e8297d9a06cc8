// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline kernels {
namespace {

float times(float value, float factor) { return value * factor; }
std::uint16_t times(std::uint16_t value, float factor) { return f32_to_bf16(bf16_to_f32(value) * factor); }

template <class T>
void multiply_rows(const BackendView<const float, 2>& factors, T* x, std::size_t rows, int threads) {
  const std::size_t tokens = factors.extent(0), columns = factors.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* factor = factors.data() + row % tokens * columns;
    T* to = x + row * columns;
    for (std::size_t i = 0; i < columns; ++i) to[i] = times(to[i], factor[i]);
  }
}

}  // namespace

void CpuBackend::scale(BackendView<float, 2> x, float factor) {
  const std::size_t rows = x.extent(0), columns = x.extent(1);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows; ++row)
    for (float& value : x.span().subspan(row * columns, columns)) value *= factor;
}

void CpuBackend::multiply(BackendView<const float, 2> factors, Operand x) {
  cpu::require(x.columns == factors.extent(1) && !factors.empty() && x.rows % factors.extent(0) == 0, "multiply",
               "a factor for each value of a member");
  if (compute_type() == DType::kBF16)
    multiply_rows(factors, static_cast<std::uint16_t*>(x.data), x.rows, threads_);
  else
    multiply_rows(factors, static_cast<float*>(x.data), x.rows, threads_);
}

void CpuBackend::clear(BackendView<float, 2> x) { std::ranges::fill(x.span(), 0.0F); }

}  // namespace kvs::inline kernels
