// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/cuda/check.h"

namespace kvs::cuda {

constexpr unsigned kThreads = 256;  // threads per block, unless a kernel states otherwise

/// Returns how many blocks of kThreads cover `count` items.  @throws Error kUnsupported above the grid's limit.
inline unsigned blocks_for(std::size_t count) {
  const std::size_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks > 0x7fffffff)
    throw Error(ErrorCode::kUnsupported, "cuda", "found " + std::to_string(count) + " items, expected fewer than 2^39");
  return static_cast<unsigned>(blocks);
}

/// Returns `count` as the grid's second extent.  @throws Error kUnsupported above its limit.
inline unsigned grid_rows(std::size_t count, std::string_view operation) {
  if (count > 0xffff)
    throw Error(ErrorCode::kUnsupported, operation,
                "found a batch of " + std::to_string(count) + ", expected fewer than 65,536 on a GPU");
  return static_cast<unsigned>(count);
}

/// The shape of a launch.
struct Grid {
  dim3 blocks;
  unsigned threads = kThreads;   // per block
  std::size_t shared_bytes = 0;  // see dynamic_shared
};

/// Queues a kernel. `name` appears in the error if that fails. Every launch uses this function, so that tests can run
/// the kernels without a GPU.
template <class... Parameters>
void launch_kernel(std::string_view name, void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream,
                   std::type_identity_t<Parameters>... arguments) {
  constexpr std::size_t kWithoutAsking = 48 << 10;
  if (grid.shared_bytes > kWithoutAsking)
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes)),
        "cudaFuncSetAttribute");
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

/// Returns the shared memory that a launch requested, 16-byte aligned.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
}

__device__ inline std::size_t global_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

/// Calls `run` with a zero in an operand's element type.
template <class Run>
void with_type(DType type, Run run) {
  if (type == DType::kBF16)
    run(__nv_bfloat16{});
  else
    run(float{});
}

}  // namespace kvs::cuda
