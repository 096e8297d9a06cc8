#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kvs {

/// Room for an empty container where no memory is left; null when the reserve is used up, too. It is never given back.
void* take_from_json_reserve(std::size_t bytes) noexcept;
bool is_in_json_reserve(const void* block) noexcept;

/// std::allocator for a JSON value's parts, but that the few bytes of one container never fail: where they do, a null
/// that becomes an object or an array (operator[], push_back) is left without one, and nlohmann 3.11.2's destructor
/// follows the null pointer. What a container then holds fails as it should, by std::bad_alloc. (That destructor takes
/// memory of its own; where there is none it ends the program by std::terminate.)
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

}  // namespace kvs
