// SPDX-License-Identifier: Apache-2.0
// Included before every CUDA source file that is compiled for the processor: nvcc's additions to C++, for grid.h.
#pragma once

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "tests/emulation/grid.h"
#include "tests/emulation/streams.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ thread_local  // also static at block scope: one per worker, which runs one block at a time
#define __launch_bounds__(...)

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;

inline void __syncthreads() { kvs::emulation::block_barrier(); }

namespace kvs::emulation {

template <class T>
struct Exchanged {
  T value, result;
  int source;  // the lane whose value becomes the result
};

template <class T>
void exchange_values(void* const* lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    auto& own = *static_cast<Exchanged<T>*>(lanes[lane]);
    own.result = static_cast<const Exchanged<T>*>(lanes[own.source % kLanes])->value;
  }
}

template <class T>
T exchange(unsigned mask, T value, int source) {
  if (mask != 0xffffffffU) fail("an exchange between some lanes of a warp only");
  Exchanged<T> own{value, value, source};
  warp_operation(exchange_values<T>, &own);
  return own.result;
}

/// Replaces launch_kernel's call of cudaLaunchKernelEx.
template <class... Parameters>
cudaError_t launch(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                   std::type_identity_t<Parameters>... arguments) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): a parameter may be a pointer
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "the parameters of a kernel");
  const GridShape shape{config->gridDim, config->blockDim, config->dynamicSmemBytes};
  const cudaError_t status = check_shape(shape, reinterpret_cast<const void*>(kernel));
  if (status == cudaSuccess) enqueue(config->stream, [=] { run_grid(shape, [&] { kernel(arguments...); }); });
  return status;
}

}  // namespace kvs::emulation

#define cudaLaunchKernelEx kvs::emulation::launch

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step) {
  return kvs::emulation::exchange(mask, value, kvs::emulation::lane() ^ step);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source) {
  return kvs::emulation::exchange(mask, value, source);
}
inline void __syncwarp() {
  char nothing = 0;
  kvs::emulation::warp_operation([](void* const*) {}, &nothing);
}

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) kvs::emulation::fail("an attribute of a kernel");
  kvs::emulation::grant_shared_memory(reinterpret_cast<const void*>(kernel), static_cast<std::size_t>(value));
  return cudaSuccess;
}

template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
/// x / y to two units in the last place; 0 beyond 2^126, as on a GPU.
inline float __fdividef(float x, float y) { return std::fabs(y) > 0x1p126F ? 0.0F : x / y; }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = std::sin(x * 3.14159265358979323846);
  *cosine = std::cos(x * 3.14159265358979323846);
}
