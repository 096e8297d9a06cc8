// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline kernels {
namespace {

template <class T>
void gather_rows(const T* table, std::span<const std::int32_t> rows, float scale, const BackendView<float, 2>& out,
                 int threads) {
  const std::size_t columns = out.extent(1);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const T* from = table + static_cast<std::size_t>(rows[row]) * columns;
    float* to = out.data() + row * columns;
    for (std::size_t i = 0; i < columns; ++i) to[i] = f32_of(from[i]) * scale;
  }
}

}  // namespace

void CpuBackend::gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) {
  cpu::require(out.extent(0) == rows.size() && out.extent(1) == table.columns, "gather", "out of [row, table.columns]");
  const auto in_table = [&](std::int32_t row) { return row >= 0 && static_cast<std::size_t>(row) < table.rows; };
  cpu::require(std::ranges::all_of(rows, in_table), "gather", "rows of the table");
  if (compute_type() == DType::kBF16)
    gather_rows(static_cast<const std::uint16_t*>(table.data), rows, scale, out, threads_);
  else
    gather_rows(static_cast<const float*>(table.data), rows, scale, out, threads_);
}

void CpuBackend::add_rows(BackendView<const float, 2> x, std::span<const std::int32_t> rows,
                          std::span<const float> weights, BackendView<float, 2> sum) {
  const std::size_t columns = sum.extent(1);
  cpu::require(x.extent(0) == rows.size() && x.extent(1) == columns && weights.size() == rows.size(), "add_rows",
               "a row and a weight for each row of x");
  const auto in_sum = [&](std::int32_t row) { return row >= 0 && static_cast<std::size_t>(row) < sum.extent(0); };
  cpu::require(std::ranges::all_of(rows, in_sum), "add_rows", "rows of the sum");
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const float weight = weights[row];
    const float* from = x.data() + row * columns;
    float* to = sum.data() + static_cast<std::size_t>(rows[row]) * columns;
    for (std::size_t i = 0; i < columns; ++i) to[i] += weight * from[i];
  }
}

}  // namespace kvs::inline kernels
