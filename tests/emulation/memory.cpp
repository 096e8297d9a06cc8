// SPDX-License-Identifier: Apache-2.0
// Device memory and page-locked memory: they start as NaN, and their guard zones are checked on release.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/emulation/grid.h"
#include "tests/emulation/streams.h"

namespace kvs::emulation {
namespace {

constexpr std::size_t kGuardBytes = 256, kDeviceBytes = std::size_t{4} << 30;
constexpr unsigned char kUnwritten = 0xff, kGuard = 0x7f;

/// One kind of memory: the pieces in use, by their first byte.
class Memory {
 public:
  void* allocate(std::size_t bytes) {
    if (bytes > kDeviceBytes - used_) return nullptr;
    auto* const block = static_cast<unsigned char*>(
        std::aligned_alloc(kGuardBytes, (bytes + 3 * kGuardBytes - 1) / kGuardBytes * kGuardBytes));
    if (block == nullptr) return nullptr;
    unsigned char* const first = block + kGuardBytes;
    std::memset(block, kGuard, kGuardBytes);
    std::memset(first, kUnwritten, bytes);
    std::memset(first + bytes, kGuard, kGuardBytes);
    pieces_[first] = bytes;
    used_ += bytes;
    return first;
  }
  void release(void* memory) {
    const auto found = pieces_.find(static_cast<unsigned char*>(memory));
    if (found == pieces_.end()) fail("the release of memory that was not allocated");
    const auto [first, bytes] = *found;
    const auto touched = [](unsigned char byte) { return byte != kGuard; };
    if (std::any_of(first - kGuardBytes, first, touched) ||
        std::any_of(first + bytes, first + bytes + kGuardBytes, touched))
      fail("a write outside of an array of " + std::to_string(bytes) + " bytes");
    pieces_.erase(found);
    used_ -= bytes;
    std::free(first - kGuardBytes);
  }
  bool holds(const void* memory, std::size_t bytes) const {
    const auto* const first = static_cast<const unsigned char*>(memory);
    const auto after = pieces_.upper_bound(const_cast<unsigned char*>(first));
    if (after == pieces_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return first + bytes <= begin + size;
  }
  std::size_t left() const { return kDeviceBytes - used_; }

 private:
  std::map<unsigned char*, std::size_t> pieces_;
  std::size_t used_ = 0;
};

Memory& device() {
  static Memory memory;
  return memory;
}
Memory& page_locked() {
  static Memory memory;
  return memory;
}

}  // namespace

void check_device_memory(const void* first, std::size_t bytes, const char* what) {
  const std::lock_guard lock(device_mutex());
  if (bytes > 0 && !device().holds(first, bytes))
    fail(std::string(what) + ": " + std::to_string(bytes) + " bytes that are not all in one device array");
}

}  // namespace kvs::emulation

using namespace kvs::emulation;

extern "C" {

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(device_mutex());
  enqueue(stream, [] {});  // the stream is there
  *memory = device().allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  enqueue(stream, [=] { device().release(memory); });
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const std::lock_guard lock(device_mutex());
  *memory = page_locked().allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const std::lock_guard lock(device_mutex());
  if (memory != nullptr) page_locked().release(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device) check_device_memory(to, bytes, "the target of a copy");
  if (from_device) check_device_memory(from, bytes, "the source of a copy");
  enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  check_device_memory(memory, bytes, "memory to be set");
  enqueue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  const std::lock_guard lock(device_mutex());
  *left = device().left();
  *all = kDeviceBytes;
  return cudaSuccess;
}

}  // extern "C"
