// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace kvs::cuda {

/// Returns the sum over the 32 lanes, equal in all lanes.
template <class T>
__device__ inline T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
  return value;
}

/// Reduces over a block of whole warps, at most 32. `scratch` is shared memory with one T per warp and may be reused
/// immediately. Every thread of the block must call this function and gets the result.
template <class T, class Reduce>
__device__ inline T block_reduce(T value, T* scratch, T neutral, Reduce reduce_warp) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  value = reduce_warp(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = reduce_warp(lane < warps ? scratch[lane] : neutral);
  __syncthreads();
  return value;
}

template <class T>
__device__ inline T block_sum(T value, T* scratch) {
  return block_reduce(value, scratch, T{0}, [](T x) { return warp_sum(x); });
}

__device__ inline float block_max(float value, float* scratch) {
  return block_reduce(value, scratch, -INFINITY, [](float x) { return warp_max(x); });
}

}  // namespace kvs::cuda
