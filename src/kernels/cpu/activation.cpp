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

}  // namespace

void CpuBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
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
    activate_rows(projected, activation, {at(out), rows, columns}, compute_type() == DType::kBF16, threads_);
  }
}

}  // namespace kvs::inline kernels
