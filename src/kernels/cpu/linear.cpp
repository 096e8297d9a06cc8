// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/tiled_product.h"

namespace kvs::inline kernels {

cpu::ProductEngine& CpuBackend::f32_products() {
  if (f32_products_ == nullptr)
    f32_products_ = cpu::make_panel_products(DType::kF32, static_cast<std::size_t>(threads_));
  return *f32_products_;
}

std::unique_ptr<Weight> CpuBackend::make_weight(const WeightSource& source) {
  return cpu::pack_weight(source.f32 ? f32_products() : *products_, source);
}

void CpuBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  multiply(x.data, x.rows, cpu::checked_weight(weight, x.columns, false), out, accumulate);
}

void CpuBackend::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                            bool accumulate) {
  cpu::multiply_tiled(f32_products(), x.data(), x.extent(0), cpu::checked_weight(weight, x.extent(1), true), out,
                      accumulate, scratch_);
}

void CpuBackend::multiply(const void* x, std::size_t rows, const cpu::PackedWeight& weight, BackendView<float, 2> out,
                          bool accumulate) {
  cpu::multiply_tiled(*products_, x, rows, weight, out, accumulate, scratch_);
}

void CpuBackend::narrow(BackendView<const float, 2> x, Operand out) {
  cpu::require(x.extent(0) == out.rows && x.extent(1) == out.columns, "narrow", "out of x's shape");
  const std::size_t size = x.size();
  if (compute_type() == DType::kF32) return copy(out.data, x.data(), size * sizeof(float));
  const float* from = x.data();
  auto* to = static_cast<std::uint16_t*>(out.data);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t i = 0; i < size; ++i) to[i] = f32_to_bf16(from[i]);
}

}  // namespace kvs::inline kernels
