// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/thread_team.h"

namespace kvs::inline kernels {

namespace {

/// Uses OMP_NUM_THREADS, by default all processors. Regions outside the backend have omp_get_max_threads() threads.
int reserved_threads(int threads) {
  const int others = omp_get_max_threads();
  cpu::reserve_threads(std::max(threads, others));
  return cpu::settle_threads(threads > 0 ? threads : others);
}

DType checked_type(DType type) {
  if (type != DType::kF32 && type != DType::kBF16) {
    throw Error(ErrorCode::kUsage, "compute type", "found " + std::string(name_of(type)) + ", expected f32 or bf16");
  }
  return type;
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
}

}  // namespace

CpuBackend::CpuBackend(DType compute_type, int threads)
    : threads_(reserved_threads(threads)),
      products_(cpu::make_product_engine(checked_type(compute_type), static_cast<std::size_t>(threads_))),
      scratch_(static_cast<std::size_t>(threads_)) {}

void CpuBackend::reserve_scratch(std::size_t bytes_per_thread) {
  for (cpu::AlignedBuffer& buffer : scratch_) buffer.reserve(bytes_per_thread);
}

void* CpuBackend::allocate(std::size_t bytes) { return cpu::allocate_aligned(bytes); }
void CpuBackend::release(void* memory) noexcept { cpu::release_aligned(memory); }
void CpuBackend::upload(void* to, const void* from_host, std::size_t bytes) { copy_bytes(to, from_host, bytes); }
void CpuBackend::download(void* to_host, const void* from, std::size_t bytes) { copy_bytes(to_host, from, bytes); }
void CpuBackend::copy(void* to, const void* from, std::size_t bytes) { copy_bytes(to, from, bytes); }
void CpuBackend::copy_pieces(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                             std::size_t bytes, std::size_t pieces) {
#pragma omp parallel for num_threads(threads_) schedule(static) if (pieces > 1)
  for (std::size_t piece = 0; piece < pieces; ++piece)
    copy_bytes(static_cast<std::byte*>(to) + piece * to_stride,
               static_cast<const std::byte*>(from) + piece * from_stride, bytes);
}

}  // namespace kvs::inline kernels
