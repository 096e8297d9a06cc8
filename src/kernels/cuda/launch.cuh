#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <string>

#include "core/error.h"

namespace kvs::cuda {

constexpr unsigned kThreads = 256;  // of a block, where a kernel does not say otherwise

/// Blocks of kThreads that cover `count` items, one each.  @throws Error kUnsupported above the grid's limit.
inline unsigned blocks_for(std::size_t count) {
  const std::size_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks > 0x7fffffff)
    throw Error(ErrorCode::kUnsupported, "cuda", "found " + std::to_string(count) + " items, expected fewer than 2^39");
  return static_cast<unsigned>(blocks);
}

__device__ inline std::size_t global_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

/// Stores an f32 in an operand's type, rounding to nearest even.
__device__ inline void store(float* to, float value) { *to = value; }
__device__ inline void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

}  // namespace kvs::cuda
