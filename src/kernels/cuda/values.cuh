// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/launch.cuh"

// Kernels that only move bytes need wide accesses: a thread handles N adjacent values of a row in accesses of 16 bytes.
namespace kvs::cuda {

/// N adjacent values in registers.
template <int N>
struct Values {
  float at[N];
};

/// The access type for N adjacent values. A pointer to them must be aligned to the size of this type.
template <class T, int N, std::size_t Bytes = N * sizeof(T)>
using Access = std::conditional_t<
    Bytes % 16 == 0, uint4,
    std::conditional_t<Bytes == 8, std::uint64_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint16_t>>>;

__device__ inline float widened(float value) { return value; }
__device__ inline float widened(__nv_bfloat16 value) { return __bfloat162float(value); }
// Round to nearest even.
__device__ inline void round_to(float* to, float value) { *to = value; }
__device__ inline void round_to(__half* to, float value) { *to = __float2half_rn(value); }
__device__ inline void round_to(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

template <int N, class T>
__device__ Values<N> load(const T* from) {
  using Word = Access<T, N>;
  Word words[N * sizeof(T) / sizeof(Word)];
#pragma unroll
  for (std::size_t i = 0; i < sizeof words / sizeof(Word); ++i) words[i] = reinterpret_cast<const Word*>(from)[i];
  T packed[N];
  memcpy(packed, words, sizeof packed);
  Values<N> values;
#pragma unroll
  for (int n = 0; n < N; ++n) values.at[n] = widened(packed[n]);
  return values;
}

template <int N, class T>
__device__ void store(T* to, const Values<N>& values) {
  using Word = Access<T, N>;
  T packed[N];
#pragma unroll
  for (int n = 0; n < N; ++n) round_to(&packed[n], values.at[n]);
  Word words[N * sizeof(T) / sizeof(Word)];
  memcpy(words, packed, sizeof packed);
#pragma unroll
  for (std::size_t i = 0; i < sizeof words / sizeof(Word); ++i) reinterpret_cast<Word*>(to)[i] = words[i];
}

template <int N, class T>
bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Access<T, N>) == 0;
}

/// Calls `run` with N as a constant if all rows (of a multiple of N values) allow accesses of N values; else with 1.
template <int N, class Run, class... T>
void with_values(std::size_t row_values, Run run, const T*... rows) {
  if (row_values % N == 0 && (is_aligned<N>(rows) && ...))
    run(std::integral_constant<int, N>{});
  else
    run(std::integral_constant<int, 1>{});
}

/// One thread per N values; the last thread handles the rest.
template <int N, class From, class To>
__global__ void convert_values(const From* from, std::size_t count, To* to) {
  std::size_t i = global_index() * N;
  if (i + N <= count) return store(to + i, load<N>(from + i));
  for (; i < count; ++i) store<1>(to + i, load<1>(from + i));
}

/// Converts `from` to the type of `to`.
template <class From, class To>
void convert(cudaStream_t stream, const From* from, std::size_t count, To* to) {
  if (count == 0) return;
  with_values<8>(
      0,
      [&](auto n) {
        launch_kernel("convert_values", convert_values<n(), From, To>, {blocks_for((count + n() - 1) / n())}, stream,
                      from, count, to);
      },
      from, to);
}

}  // namespace kvs::cuda
