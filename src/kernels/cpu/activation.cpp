// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::inline kernels {
namespace {

/// Writes rows of f(x), or of f(first half of x) · second half. out: [row, columns]
void activate_rows(BackendView<const float, 2> x, Activation activation, Operand out, bool bf16, int threads) {
  const std::size_t rows = x.extent(0), stride = x.extent(1), item = bf16 ? sizeof(std::uint16_t) : sizeof(float);
  const auto activate = cpu::loops().activate;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * stride;
    activate(activation, from, stride == out.columns ? nullptr : from + out.columns, out.columns,
             static_cast<std::byte*>(out.data) + row * out.columns * item, bf16);
  }
}

/// Limits rows [gate | up] so that kGeluSigmoid of the gate · up is the clamped SwiGLU: a · sigmoid(alpha · a) =
/// r · f(a / r) with f(x) = x · sigmoid(kSteep · x) and r = kSteep / alpha.
void limit_rows(BackendView<float, 2> x, const SwigluClamp& clamp, int threads) {
  constexpr float kSteep = 1.702F;  // of kGeluSigmoid
  const std::size_t rows = x.extent(0), width = x.extent(1) / 2;
  const float ratio = kSteep / clamp.alpha, inverse = clamp.alpha / kSteep;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float *const gate = x.data() + row * 2 * width, *const up = gate + width;
    for (std::size_t i = 0; i < width; ++i) {
      gate[i] = std::min(gate[i], clamp.limit) * inverse;
      up[i] = (std::clamp(up[i], -clamp.limit, clamp.limit) + 1) * ratio;
    }
  }
}

/// Cuts the gates of rows [gate | up].
void cut_rows(BackendView<float, 2> x, float deviations, int threads) {
  const std::size_t rows = x.extent(0), width = x.extent(1) / 2;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    float* const gate = x.data() + row * 2 * width;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i) sum += double{gate[i]};
    const double mean = sum / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) squares += (double{gate[i]} - mean) * (double{gate[i]} - mean);
    const auto least = static_cast<float>(mean + double{deviations} * std::sqrt(squares / static_cast<double>(width)));
    for (std::size_t i = 0; i < width; ++i) gate[i] = std::max(gate[i] - least, 0.0F);
  }
}

}  // namespace

void CpuBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
  project_up(x, weight, activation, nullptr, out);
}

void CpuBackend::clamped_up_projection(Operand x, const Weight& weight, const SwigluClamp& clamp, Operand out) {
  cpu::require(clamp.limit > 0 && clamp.alpha > 0 && weight.rows() == 2 * out.columns, "clamped_up_projection",
               "a limit, an alpha, and a gate");
  project_up(
      x, weight, Activation::kGeluSigmoid,
      [&](const BackendView<float, 2>& rows) { limit_rows(rows, clamp, threads_); }, out);
}

void CpuBackend::sparse_up_projection(Operand x, const Weight& weight, Activation activation, float deviations,
                                      Operand out) {
  cpu::require(weight.rows() == 2 * out.columns, "sparse_up_projection", "a gate");
  project_up(
      x, weight, activation, [&](const BackendView<float, 2>& rows) { cut_rows(rows, deviations, threads_); }, out);
}

void CpuBackend::project_up(Operand x, const Weight& weight, Activation activation, const ChangeRows& change,
                            Operand out) {
  constexpr std::size_t kSlabRows = 2048;  // bounds the product's memory
  const std::size_t width = weight.rows(), columns = out.columns;
  cpu::require(out.rows == x.rows && (width == columns || width == 2 * columns), "up_projection",
               "out of x's rows and the weight's rows or half of them");
  projected_.reserve(std::min(kSlabRows, x.rows) * width * sizeof(float));
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t rows = std::min(kSlabRows, x.rows - first), item = item_size(compute_type());
    const auto at = [&](const Operand& matrix) {
      return static_cast<std::byte*>(matrix.data) + first * matrix.columns * item;
    };
    const BackendView<float, 2> projected(std::span(static_cast<float*>(projected_.data()), rows * width),
                                          {rows, width});
    linear({at(x), rows, x.columns}, weight, projected, false);
    if (change) change(projected);
    activate_rows(projected, activation, {at(out), rows, columns}, compute_type() == DType::kBF16, threads_);
  }
}

}  // namespace kvs::inline kernels
