// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/block_row.cuh"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/weight.h"

namespace kvs::cuda {
namespace {

/// The state of a row after some slices of the vocabulary.
struct RowState {
  double sum;     // Σ exp(logit − largest); NaN after a non-finite logit
  float largest;  // −∞ before the first slice
  float target;   // the target's logit, once its slice was processed
};

__global__ void start_rows(RowState* states, std::size_t rows) {
  const std::size_t row = global_index();
  if (row < rows) states[row] = {0.0, -INFINITY, 0.0F};
}

/// Adds logits [row, width] of tokens [first, first + width) to the states, capped if softcap > 0. One block per row.
template <int N>
__global__ void reduce_slice(const float* logits, std::size_t width, std::size_t first, const std::int32_t* targets,
                             float softcap, RowState* states) {
  __shared__ float maxima[kThreads / 32];
  __shared__ double sums[kThreads / 32];
  const std::int32_t target = targets[blockIdx.x];
  if (target < 0) return;  // the whole block returns, so no thread waits at a barrier
  const BlockRow<N> row(logits + std::size_t{blockIdx.x} * width, width);
  const auto capped = [&](float logit) { return softcap > 0 ? softcap * tanhf(logit / softcap) : logit; };
  float largest = -INFINITY;
  const float poison = row.sum([&](float logit) {
    largest = fmaxf(largest, capped(logit));
    return logit * 0.0F;  // becomes NaN if a logit is infinite or NaN
  });
  largest = block_max(largest, maxima);
  const float sum = row.sum([&](float logit) { return expf(capped(logit) - largest); });
  const double total = block_sum(static_cast<double>(sum + poison), sums);
  if (threadIdx.x != 0) return;
  RowState& state = states[blockIdx.x];
  const float above = fmaxf(state.largest, largest);
  const auto weight = [&](float from) { return exp(static_cast<double>(from) - static_cast<double>(above)); };
  state.sum = state.sum * weight(state.largest) + total * weight(largest);
  state.largest = above;
  if (static_cast<std::size_t>(target) >= first && static_cast<std::size_t>(target) < first + width)
    state.target = capped(logits[blockIdx.x * width + static_cast<std::size_t>(target) - first]);
}

/// Returns nll = largest + log Σ − target, in double because the caller must see whether it is finite.
double finish(const RowState& state, std::size_t row) {
  const double total = static_cast<double>(state.largest) + std::log(state.sum);
  if (!std::isfinite(total))
    throw Error(ErrorCode::kData, "logits", "row " + std::to_string(row) + " has a value that is not finite");
  return total - static_cast<double>(state.target);
}

}  // namespace
}  // namespace kvs::cuda

namespace kvs::inline kernels {

void CudaBackend::cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets,
                                std::span<float> nll, float softcap) {
  // One tile of logits is 32 MiB, which the second-level caches of large GPUs hold. A block's registers hold one row.
  constexpr std::size_t kSlice = 4096, kMaxRows = 2048;
  const cuda::CudaWeight& weight = cuda::checked_weight(head, x.columns, type_);
  const std::size_t rows = x.rows, vocabulary = weight.rows(), item = item_size(type_);
  cuda::require(targets.size() == rows && nll.size() == rows, "cross_entropy", "one target and one result per row");
  for (const std::int32_t target : targets)
    cuda::require(target < 0 || static_cast<std::size_t>(target) < vocabulary, "cross_entropy",
                  "targets below the vocabulary");
  if (rows == 0) return;
  const cuda::DeviceArray<std::int32_t> device_targets(context_, targets);
  const cuda::DeviceArray<cuda::RowState> states(context_, rows);
  logits_.reserve(context_, std::min(rows, kMaxRows) * std::min(vocabulary, kSlice));
  cuda::launch_kernel("start_rows", cuda::start_rows, {cuda::blocks_for(rows)}, context_.stream(), states.data(), rows);
  for (std::size_t row = 0; row < rows; row += kMaxRows) {
    const std::size_t height = std::min(kMaxRows, rows - row);
    if (std::ranges::all_of(targets.subspan(row, height), [](std::int32_t target) { return target < 0; })) continue;
    for (std::size_t column = 0; column < vocabulary; column += kSlice) {
      const std::size_t width = std::min(kSlice, vocabulary - column);
      gemm_.run({.x = static_cast<const std::byte*>(x.data) + row * x.columns * item,
                 .w = weight.rows_from(column),
                 .bias = weight.bias_from(column),
                 .y = logits_.data(),
                 .rows = height,
                 .columns = width,
                 .inner = x.columns});
      cuda::with_values<4>(
          width,
          [&](auto n) {
            cuda::launch_kernel("reduce_slice", cuda::reduce_slice<n()>, {static_cast<unsigned>(height)},
                                context_.stream(), logits_.data(), width, column, device_targets.data() + row, softcap,
                                states.data() + row);
          },
          logits_.data());
    }
  }
  const std::vector<cuda::RowState> finished = states.to_host();
  for (std::size_t row = 0; row < rows; ++row)
    nll[row] = targets[row] < 0 ? 0.0F : static_cast<float>(cuda::finish(finished[row], row));
}

}  // namespace kvs::inline kernels
