// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

namespace kvs::cpu {

/// Allocates at least `bytes` bytes, aligned to a cache line; from 4 MiB on aligned to, and requested as, huge pages.
/// @throws Error kEnvironment "out of memory for N bytes".
void* allocate_aligned(std::size_t bytes);
void release_aligned(void* memory) noexcept;

/// Scratch memory that grows and is reused. Growing discards the content.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  ~AlignedBuffer() { release_aligned(data_); }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    release_aligned(std::exchange(data_, nullptr));
    bytes_ = 0;
    data_ = allocate_aligned(bytes);
    bytes_ = bytes;
  }
  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kvs::cpu
