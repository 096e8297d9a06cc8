// SPDX-License-Identifier: Apache-2.0
#include "io/json_allocator.h"

#include <array>
#include <atomic>
#include <functional>

namespace kvs::inline io {
namespace {

// A run ends at the first std::bad_alloc after the reserve is used, so a thousand containers are more than enough.
constexpr std::size_t kBlockBytes = 32;
alignas(std::max_align_t) std::array<std::byte, 1024 * kBlockBytes> reserve;
std::atomic<std::size_t> taken{0};

}  // namespace

void* take_from_json_reserve(std::size_t bytes) noexcept {
  if (bytes > kBlockBytes) return nullptr;
  const std::size_t at = kBlockBytes * taken.fetch_add(1);
  return at < reserve.size() ? reserve.data() + at : nullptr;
}

bool is_in_json_reserve(const void* block) noexcept {
  const std::less<const void*> before;
  return !before(block, reserve.data()) && before(block, reserve.data() + reserve.size());
}

}  // namespace kvs::inline io
