#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>

namespace kvs::cuda {

/// One device, one stream, and the BLAS handles bound to it. Everything that a backend and its operations do is queued
/// on this stream, so that memory may be released as soon as its last use is queued. Not thread-safe.
class Context {
 public:
  /// Device 0 of those that CUDA_VISIBLE_DEVICES leaves.
  /// @throws Error kEnvironment if there is none, or it is older than compute capability 8.0.
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cudaStream_t stream() const noexcept { return stream_; }
  cublasHandle_t blas() const noexcept { return blas_; }
  cublasLtHandle_t blas_lt() const noexcept { return blas_lt_; }
  /// Of the device.
  int attribute(cudaDeviceAttr which) const;

  /// Stream-ordered device memory, 256-byte aligned.  @throws Error kEnvironment "out of memory for N bytes".
  void* allocate(std::size_t bytes) const;
  void release(void* memory) const noexcept;
  /// Bytes that allocate() could still give, the pool's unused ones included.
  std::size_t memory_left() const;
  /// Returns when the host memory may be reused.
  void upload(void* to, const void* from_host, std::size_t bytes) const;
  /// Waits for everything that was queued before.
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
