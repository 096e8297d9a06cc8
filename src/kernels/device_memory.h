// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/tensor_view.h"

namespace kvs::inline kernels {

template <class T, std::size_t Rank>
using BackendView = TensorView<T, Rank, Memory::kBackend>;

/// Host memory into which a device copies while it computes. The memory is page-locked on a GPU.
class Staging {
 public:
  virtual ~Staging() = default;
  /// Starts a copy of f32 backend memory of at most the staging's size. The source may be overwritten as soon as
  /// start() returns. Call it from the backend's thread, after wait() returned for the previous copy.
  virtual void start(std::span<const float> from) = 0;
  /// Returns the values of the last start() in the staging's type, rounded to nearest even. Any thread may call, once.
  virtual std::span<const std::byte> wait() = 0;
};

/// The memory of one device. All matrices in it are row-major and packed.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// @throws Error kEnvironment "out of memory for N bytes".
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  /// Waits for all earlier operations.
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Copies `pieces` pieces of `bytes` each. They begin `to_stride` and `from_stride` bytes apart, and do not overlap.
  virtual void copy_pieces(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                           std::size_t bytes, std::size_t pieces);
  /// Returns the free bytes of a device with its own memory; SIZE_MAX if the device uses the system's memory.
  virtual std::size_t memory_left() const { return SIZE_MAX; }
  /// Makes a staging for copies of up to `values` values to the host in `type`. It must not outlive the backend.
  virtual std::unique_ptr<Staging> make_staging(std::size_t values, DType type);
};

/// Backend memory with an owner. Movable, not copyable.
template <class T, std::size_t Rank>
class BackendTensor {
 public:
  BackendTensor() = default;
  BackendTensor(DeviceMemory& memory, std::array<std::size_t, Rank> shape) : memory_(&memory) {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    auto* data = static_cast<T*>(memory.allocate(size * sizeof(T)));
    view_ = BackendView<T, Rank>(std::span<T>(data, size), shape);
  }
  BackendTensor(BackendTensor&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), view_(std::exchange(other.view_, {})) {}
  BackendTensor& operator=(BackendTensor&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~BackendTensor() {
    if (memory_ != nullptr) memory_->release(view_.data());
  }
  const BackendView<T, Rank>& view() const noexcept { return view_; }
  std::size_t bytes() const noexcept { return view_.size() * sizeof(T); }

 private:
  DeviceMemory* memory_ = nullptr;
  BackendView<T, Rank> view_;
};

/// Returns a copy of `view` in its own memory on the same device.
template <class T, std::size_t Rank>
BackendTensor<T, Rank> copy_of(DeviceMemory& memory, BackendView<const T, Rank> view) {
  BackendTensor<T, Rank> copy(memory, view.shape());
  memory.copy(copy.view().data(), view.data(), copy.bytes());
  return copy;
}

/// Returns a copy of `view` in host memory, for analyses that run there. The CPU backend also copies.
template <class T, std::size_t Rank>
std::vector<std::remove_const_t<T>> download(DeviceMemory& memory, BackendView<T, Rank> view) {
  std::vector<std::remove_const_t<T>> host(view.size());
  if (!host.empty()) memory.download(host.data(), view.data(), host.size() * sizeof(T));
  return host;
}

}  // namespace kvs::inline kernels
