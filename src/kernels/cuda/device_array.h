// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// Device memory with an owner, allocated and released in the order of the context's stream. Not initialised.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(const Context& context, std::size_t size)
      : context_(&context), data_(static_cast<T*>(context.allocate(size * sizeof(T)))), size_(size) {}
  DeviceArray(const Context& context, std::span<const T> host) : DeviceArray(context, host.size()) {
    context.upload(data_, host.data(), host.size_bytes());
  }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceArray() {
    if (context_ != nullptr) context_->release(data_);
  }

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// Grows to at least `size` elements. Growing discards the contents.
  void reserve(const Context& context, std::size_t size) {
    if (size <= size_) return;
    *this = DeviceArray();  // released first: both may not fit at once
    *this = DeviceArray(context, size);
  }
  std::vector<T> to_host() const {
    std::vector<T> host(size_);
    context_->download(host.data(), data_, size_ * sizeof(T));
    return host;
  }

 private:
  void swap(DeviceArray& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  const Context* context_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kvs::cuda
