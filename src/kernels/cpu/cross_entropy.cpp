// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "core/error.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/weight.h"

namespace kvs::inline kernels {
namespace {

double log_sum(const cpu::LogitSum* slices, std::size_t count) {
  float largest = slices[0].largest;
  for (std::size_t i = 1; i < count; ++i) largest = std::max(largest, slices[i].largest);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += slices[i].sum * std::exp(static_cast<double>(slices[i].largest) - static_cast<double>(largest));
  return static_cast<double>(largest) + std::log(sum);
}

}  // namespace

void CpuBackend::cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets,
                               std::span<float> nll, float softcap) {
  // A tile of logits is read three times after the product wrote it, so it must fit the private cache.
  constexpr std::size_t kSlice = 1024, kMaxRows = 128;
  const cpu::PackedWeight& packed = cpu::checked_weight(head, x.columns, false);
  const std::size_t rows = x.rows, n = packed.rows(), k = packed.columns();
  cpu::require(targets.size() == rows && nll.size() == rows, "cross_entropy", "one target and one result per row");
  for (const std::int32_t target : targets)
    cpu::require(target < 0 || static_cast<std::size_t>(target) < n, "cross_entropy", "targets below the vocabulary");
  if (rows == 0) return;
  const std::size_t tile_rows = cpu::row_tile(rows, static_cast<std::size_t>(threads_), kMaxRows);
  const std::size_t step = packed.layout().column_step();
  const std::size_t slice = step >= kSlice ? step : kSlice / step * step, slices = (n + slice - 1) / slice;
  const cpu::TileProducts tiles(*products_, packed, {rows, tile_rows}, {n, std::min(slice, n)}, false);
  reserve_scratch(tile_rows * std::min(slice, n) * sizeof(float));
  std::vector<cpu::LogitSum> sums(rows * slices);  // [row, slice]
  std::vector<float> target_logits(rows);
  const cpu::OneThreadEach guard;
  std::atomic<bool> refused = false;
  // Slices are the outer loop: all threads work on one slice of the weight at a time, and the shared cache holds it.
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1) collapse(2)
  for (std::size_t column = 0; column < n; column += slice) {
    for (std::size_t row = 0; row < rows; row += tile_rows) {
      const auto worker = cpu::this_worker();
      const std::size_t height = std::min(tile_rows, rows - row), width = std::min(slice, n - column);
      if (std::ranges::all_of(targets.subspan(row, height), [](std::int32_t target) { return target < 0; })) continue;
      auto* logits = static_cast<float*>(scratch_[worker].data());
      const void* from = static_cast<const std::byte*>(x.data) + row * k * item_size(compute_type());
      if (!tiles.run(worker, from, row, column, logits)) refused = true;
      if (softcap > 0) cpu::loops().cap_logits(logits, height * width, softcap);
      for (std::size_t r = 0; r < height; ++r) {
        sums[(row + r) * slices + column / slice] = cpu::loops().reduce_logits(logits + r * width, width);
        const auto target = static_cast<std::int64_t>(targets[row + r]) - static_cast<std::int64_t>(column);
        if (targets[row + r] >= 0 && target >= 0 && static_cast<std::size_t>(target) < width)
          target_logits[row + r] = logits[r * width + static_cast<std::size_t>(target)];
      }
    }
  }
  cpu::require(!refused, "cross_entropy", "its products to run");
  for (std::size_t row = 0; row < rows; ++row) {
    nll[row] = 0;
    if (targets[row] < 0) continue;
    const double total = log_sum(&sums[row * slices], slices);
    if (!std::isfinite(total))
      throw Error(ErrorCode::kData, "logits", "row " + std::to_string(row) + " has a value that is not finite");
    nll[row] = static_cast<float>(total - static_cast<double>(target_logits[row]));
  }
}

}  // namespace kvs::inline kernels
