// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kvs::inline io {

/// Returns memory for an empty container when no other memory is left; null if the reserve is used up too. The memory
/// is never given back.
void* take_from_json_reserve(std::size_t bytes) noexcept;
bool is_in_json_reserve(const void* block) noexcept;

/// std::allocator for the parts of a JSON value, except that allocating one container never fails. If it did, a null
/// that becomes an object or an array (operator[], push_back) would hold a null pointer, which nlohmann 3.11.2's
/// destructor follows. The contents of a container fail with std::bad_alloc as usual. (That destructor allocates memory
/// itself; if it cannot, the program ends by std::terminate.)
template <class T>
struct JsonAllocator {
  using value_type = T;

  JsonAllocator() = default;
  template <class U>
  JsonAllocator(const JsonAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as allocators are

  T* allocate(std::size_t count) {
    try {
      return std::allocator<T>().allocate(count);
    } catch (const std::bad_alloc&) {
      void* const block = count == 1 ? take_from_json_reserve(sizeof(T)) : nullptr;
      if (block == nullptr) throw;
      return static_cast<T*>(block);
    }
  }
  void deallocate(T* block, std::size_t count) noexcept {
    if (!is_in_json_reserve(block)) std::allocator<T>().deallocate(block, count);
  }
  friend bool operator==(const JsonAllocator&, const JsonAllocator&) { return true; }
};

}  // namespace kvs::inline io
