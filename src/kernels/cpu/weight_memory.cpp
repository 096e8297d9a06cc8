// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/weight_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "kernels/cpu/aligned.h"

namespace kvs::cpu {
namespace {

/// Returns a mapping of `bytes` bytes that starts at a huge page, or nullptr if the system refuses.
void* map_aligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  if (bytes > PTRDIFF_MAX - kHugePage) return nullptr;
  void* const all = ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(all);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(first, before);
  ::munmap(first + before + bytes, kHugePage - before);
  (void)::madvise(first + before, bytes, MADV_HUGEPAGE);  // a refusal only costs speed
  return first + before;
}

std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

WeightMemory::WeightMemory(std::size_t bytes) : data_(nullptr), mapped_(0) {
  if (bytes >= kMappedBytes && bytes <= PTRDIFF_MAX / 2) {
    data_ = map_aligned(whole_pages(bytes));
    if (data_ != nullptr) mapped_ = whole_pages(bytes);
  }
  if (data_ == nullptr) data_ = allocate_aligned(bytes);  // which throws if there is no memory at all
}

WeightMemory::WeightMemory(WeightMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

WeightMemory::~WeightMemory() {
  if (mapped_ > 0)
    ::munmap(data_, mapped_);
  else
    release_aligned(data_);
}

}  // namespace kvs::cpu
