// SPDX-License-Identifier: Apache-2.0
// Replaces src/kernels/cuda/ptx.cuh where the kernels run on the processor, with equal functions and layouts. The last
// lane that arrives does the work of all lanes in an operation of a warp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/emulation/grid.h"

namespace kvs::cuda {

extern constinit thread_local uint4 dynamic_shared_memory[];

namespace ptx {

using SharedAddress = std::uint32_t;  // from the beginning of dynamic shared memory

inline SharedAddress shared_address(const void* shared) {
  const auto* const begin = reinterpret_cast<const char*>(dynamic_shared_memory);
  return static_cast<SharedAddress>(static_cast<const char*>(shared) - begin);
}
inline char* shared_row(SharedAddress address) {
  emulation::check_shared(address, 16);
  return reinterpret_cast<char*>(dynamic_shared_memory) + address;
}

inline void copy_async(SharedAddress to, const void* from, bool inside) {
  if (inside && reinterpret_cast<std::uintptr_t>(from) % 16 != 0) emulation::fail("cp.async from an odd address");
  emulation::copy_later(shared_row(to), inside ? from : nullptr, 16);
}
inline void commit_copies() { emulation::end_copy_group(); }
template <int Pending>
void wait_for_copies() {
  emulation::wait_for_copies(Pending);
}

struct MatrixLoad {
  const char* row;
  std::uint32_t* to;
};

/// The eight rows of a matrix are read at once: they must lie in different eighths of the 32 banks of 4 bytes. A GPU
/// would only take longer.
inline void check_banks(void* const* rows) {
  unsigned eighths = 0;
  for (int row = 0; row < 8; ++row)
    eighths |= 1U << reinterpret_cast<std::uintptr_t>(static_cast<const MatrixLoad*>(rows[row])->row) / 16 % 8;
  if (eighths != 0xff) emulation::fail("a matrix in shared memory whose rows lie in the same banks");
}

template <bool Transposed>
void load_for_warp(void* const* lanes) {
  const auto load = [&](int lane) -> const MatrixLoad& { return *static_cast<const MatrixLoad*>(lanes[lane]); };
  for (int matrix = 0; matrix < 4; ++matrix) check_banks(lanes + 8 * matrix);
  for (int lane = 0; lane < emulation::kLanes; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t pair[2];
      for (int i = 0; i < 2; ++i) {
        const int along = 2 * (lane % 4) + i, across = lane / 4;
        const char* const row = load(8 * matrix + (Transposed ? along : across)).row;
        std::memcpy(&pair[i], row + 2 * (Transposed ? across : along), 2);
      }
      std::memcpy(load(lane).to + matrix, pair, sizeof pair);
    }
  }
}

inline void load_matrices(std::uint32_t (&to)[4], SharedAddress row) {
  MatrixLoad own{shared_row(row), to};
  emulation::warp_operation(load_for_warp<false>, &own);
}
inline void load_transposed(std::uint32_t (&to)[4], SharedAddress row) {
  MatrixLoad own{shared_row(row), to};
  emulation::warp_operation(load_for_warp<true>, &own);
}

struct Product {
  float* sum;
  std::uint32_t a[4], b[2];
};

/// Half 0 or 1 of a word of two bf16.
inline float bf16_half(std::uint32_t word, int half) {
  const std::uint32_t bits = half == 0 ? word << 16 : word & 0xffff0000U;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline void multiply_for_warp(void* const* lanes) {
  float a[16][16], b[16][8];
  for (int lane = 0; lane < emulation::kLanes; ++lane) {
    const auto& own = *static_cast<const Product*>(lanes[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int half = 0; half < 2; ++half) {
      for (int word = 0; word < 4; ++word)
        a[g + word % 2 * 8][2 * t + half + word / 2 * 8] = bf16_half(own.a[word], half);
      for (int word = 0; word < 2; ++word) b[2 * t + half + word * 8][g] = bf16_half(own.b[word], half);
    }
  }
  for (int lane = 0; lane < emulation::kLanes; ++lane) {
    float* const sum = static_cast<Product*>(lanes[lane])->sum;
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float products = 0;
      for (int k = 0; k < 16; ++k) products += a[row][k] * b[k][column];
      sum[i] += products;
    }
  }
}

inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Product own{sum, {a[0], a[1], a[2], a[3]}, {b0, b1}};
  emulation::warp_operation(multiply_for_warp, &own);
}

inline float exp2_fast(float x) {
  const float result = std::exp2(x);
  return result < 0x1p-126F ? 0.0F : result;
}

}  // namespace ptx
}  // namespace kvs::cuda
