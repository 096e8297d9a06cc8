// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/aligned.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"

namespace kvs::cpu {

void* allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kCacheLine;
  void* memory = nullptr;
  if (bytes <= PTRDIFF_MAX - alignment) {
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    // Huge pages reduce page faults and TLB misses. A refusal only costs speed.
    if (memory != nullptr && alignment == kHugePage) (void)madvise(memory, rounded, MADV_HUGEPAGE);
  }
  if (memory == nullptr)
    throw Error(ErrorCode::kEnvironment, "cpu", "out of memory for " + std::to_string(bytes) + " bytes");
  return memory;
}

void release_aligned(void* memory) noexcept { std::free(memory); }

}  // namespace kvs::cpu
