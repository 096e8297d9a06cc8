// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The instructions of compute capability 8.0 that C++ has no name for, one function each. Only this header of the
/// folder contains assembly, so that a test without a GPU can replace it. Source of all layouts: NVIDIA, "Parallel
/// Thread Execution ISA", sections on mma.m16n8k16, ldmatrix and cp.async.
namespace kvs::cuda::ptx {

/// A byte address in the block's shared memory.
using SharedAddress = std::uint32_t;

__device__ inline SharedAddress shared_address(const void* shared) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(shared));
}

/// Starts a copy of 16 bytes of global memory, or writes 16 zeros if not `inside` without reading `from`. Both
/// addresses are aligned to 16 bytes.
__device__ inline void copy_async(SharedAddress to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(inside ? 16 : 0)
               : "memory");
}
/// Ends a group: the copies that this thread started since the previous group.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits for this thread's groups except the latest `Pending`. Other threads' copies are visible after a barrier.
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/// Loads four 8 × 8 matrices of 16-bit values with rows of 16 bytes. Lane i passes the address of row i % 8 of matrix i
/// / 8. It receives from matrix j, in to[j], the values 2 · (i % 4) and the next of row i / 4.
__device__ inline void load_matrices(std::uint32_t (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
/// Like load_matrices(), for the transposed matrices: rows 2 · (i % 4) and the next of column i / 4.
__device__ inline void load_transposed(std::uint32_t (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/// sum[16, 8] += a[16, 16] · b[16, 8] in bf16. With g = lane / 4 and t = lane % 4, a lane holds: from a, the words
/// (columns 2t, 2t + 1) of rows g and g + 8, and the words eight columns further of the same rows; from b, rows (2t, 2t
/// + 1) and (2t + 8, 2t + 9) of column g; from the sum, columns 2t, 2t + 1 of row g, then of row g + 8.
__device__ inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Returns 2^x within 2 units in the last place; 0 if the result would be subnormal.
__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace kvs::cuda::ptx
