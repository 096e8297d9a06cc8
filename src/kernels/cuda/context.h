// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>

namespace kvs::cuda {

/// One device, one stream, and the BLAS handles bound to it. A backend and its operations queue all work on this
/// stream, so memory may be released as soon as its last use is queued. Not thread-safe.
class Context {
 public:
  /// Uses device 0 of those that CUDA_VISIBLE_DEVICES allows.
  /// @throws Error kEnvironment if there is none, or it is older than compute capability 8.0.
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cudaStream_t stream() const noexcept { return stream_; }
  cublasHandle_t blas() const noexcept { return blas_; }
  cublasLtHandle_t blas_lt() const noexcept { return blas_lt_; }
  /// Returns an attribute of the device.
  int attribute(cudaDeviceAttr which) const;

  /// Allocates stream-ordered device memory, 256-byte aligned.  @throws Error kEnvironment "out of memory for N bytes".
  void* allocate(std::size_t bytes) const;
  void release(void* memory) const noexcept;
  /// Returns the bytes that allocate() can still provide, including the pool's unused bytes.
  std::size_t memory_left() const;
  /// Returns once the host memory may be reused.
  void upload(void* to, const void* from_host, std::size_t bytes) const;
  /// Waits for all work queued before.
  void download(void* to_host, const void* from, std::size_t bytes) const;
  void copy(void* to, const void* from, std::size_t bytes) const;
  void clear(void* memory, std::size_t bytes) const;

 private:
  void release_handles() noexcept;

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  cublasLtHandle_t blas_lt_ = nullptr;
};

}  // namespace kvs::cuda
