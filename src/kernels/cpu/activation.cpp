#include <algorithm>

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

}  // namespace

void CpuBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
  project_up(x, weight, activation, {}, out);
}

void CpuBackend::clamped_up_projection(Operand x, const Weight& weight, const SwigluClamp& clamp, Operand out) {
  cpu::require(clamp.limit > 0 && clamp.alpha > 0 && weight.rows() == 2 * out.columns, "clamped_up_projection",
               "a limit, an alpha, and a gate");
  project_up(x, weight, Activation::kGeluSigmoid, clamp, out);
}

void CpuBackend::project_up(Operand x, const Weight& weight, Activation activation, const SwigluClamp& clamp,
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
    if (clamp.limit > 0) limit_rows(projected, clamp, threads_);
    activate_rows(projected, activation, {at(out), rows, columns}, compute_type() == DType::kBF16, threads_);
  }
}

}  // namespace kvs::inline kernels
