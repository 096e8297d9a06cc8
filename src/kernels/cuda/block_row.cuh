// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {

/// A row shared by a block of kThreads threads. Each share of a thread is N adjacent values. A thread's first kHeld
/// shares stay in registers (rows of 4,096 values with N = 4); the others are read again from cache.
template <int N>
class BlockRow {
 public:
  __device__ BlockRow(const float* row, std::size_t columns) : row_(row), columns_(columns) {
#pragma unroll
    for (unsigned share = 0; share < kHeld; ++share)
      if (place(share) < columns_) held_[share] = load<N>(row_ + place(share));
  }

  /// Calls visit(column, values) for this thread's values, always in the same order.
  template <class Visit>
  __device__ void each(Visit visit) const {
#pragma unroll
    for (unsigned share = 0; share < kHeld; ++share)
      if (place(share) < columns_) visit(place(share), held_[share]);
    for (std::size_t column = place(kHeld); column < columns_; column += kThreads * N)
      visit(column, load<N>(row_ + column));
  }

  /// Returns the sum of of(value) over this thread's values.
  template <class Of>
  __device__ float sum(Of of) const {
    float sum = 0;
    each([&](std::size_t, const Values<N>& values) {
#pragma unroll
      for (int n = 0; n < N; ++n) sum += of(values.at[n]);
    });
    return sum;
  }

 private:
  static constexpr unsigned kHeld = 4;
  __device__ static std::size_t place(unsigned share) { return std::size_t{share * kThreads + threadIdx.x} * N; }

  const float* row_;
  std::size_t columns_;
  Values<N> held_[kHeld];
};

}  // namespace kvs::cuda
