#pragma once

#include <cmath>

namespace kvs::cuda {

/// Sum over the 32 lanes, the same in all of them.
template <class T>
__device__ inline T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
  return value;
}

/// The same over a block of whole warps, at most 32 of them. `scratch` is shared memory of one T per warp; it may be
/// used again right away. Every thread of the block must call, and gets the result.
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
