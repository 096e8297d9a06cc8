// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/context.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "kernels/cuda/check.h"

namespace kvs::cuda {
namespace {

constexpr int kDevice = 0;

int attribute_of_device(cudaDeviceAttr which) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, kDevice), "cudaDeviceGetAttribute");
  return value;
}

void check_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    const std::string reason = status == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(status) + ")";
    throw Error(ErrorCode::kEnvironment, "device cuda", "found no CUDA device" + reason + ", expected one");
  }
  const int major = attribute_of_device(cudaDevAttrComputeCapabilityMajor),
            minor = attribute_of_device(cudaDevAttrComputeCapabilityMinor);
  if (major < 8) {
    throw Error(
        ErrorCode::kEnvironment, "device cuda",
        "found compute capability " + std::to_string(major) + "." + std::to_string(minor) + ", expected 8.0 or later");
  }
  if (attribute_of_device(cudaDevAttrMemoryPoolsSupported) == 0)
    throw Error(ErrorCode::kEnvironment, "device cuda", "found no memory pools, expected a driver that has them");
}

}  // namespace

Context::Context() {
  check_device();
  check_cuda(cudaSetDevice(kDevice), "cudaSetDevice");
  // Released memory stays in the pool, because passes request equal sizes again and again.
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, kDevice), "cudaDeviceGetDefaultMemPool");
  std::uint64_t threshold = UINT64_MAX;
  check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "cudaMemPoolSetAttribute");
  try {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cublas(cublasCreate(&blas_), "cublasCreate");
    check_cublas(cublasSetStream(blas_, stream_), "cublasSetStream");
    // Sums stay in f32 even if the result is bf16.
    check_cublas(cublasSetMathMode(blas_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "cublasSetMathMode");
    check_cublas(cublasLtCreate(&blas_lt_), "cublasLtCreate");
  } catch (...) {
    release_handles();
    throw;
  }
}

Context::~Context() { release_handles(); }

void Context::release_handles() noexcept {
  // A status here can only repeat an error that an earlier call reported.
  if (blas_lt_ != nullptr) (void)cublasLtDestroy(blas_lt_);
  if (blas_ != nullptr) (void)cublasDestroy(blas_);
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

int Context::attribute(cudaDeviceAttr which) const { return attribute_of_device(which); }

void* Context::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, std::max<std::size_t>(bytes, 1), stream_);
  // A size that exceeds any device is reported as an invalid value.
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) {
    (void)cudaGetLastError();  // this error is not sticky, so it is cleared
    throw Error(ErrorCode::kEnvironment, "cuda", "out of memory for " + std::to_string(bytes) + " bytes");
  }
  check_cuda(status, "cudaMallocAsync");
  return memory;
}

void Context::release(void* memory) const noexcept {
  if (memory != nullptr) (void)cudaFreeAsync(memory, stream_);
}

std::size_t Context::memory_left() const {
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");  // released memory is free from here on
  std::size_t free = 0, all = 0;
  check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, kDevice), "cudaDeviceGetDefaultMemPool");
  std::uint64_t reserved = 0, used = 0;
  check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "cudaMemPoolGetAttribute");
  check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
  return free + static_cast<std::size_t>(reserved - used);
}

void Context::upload(void* to, const void* from_host, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
  check_cuda(cudaStreamSynchronize(stream_), "copy to the device");
}

void Context::download(void* to_host, const void* from, std::size_t bytes) const {
  if (bytes != 0)
    check_cuda(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
  check_cuda(cudaStreamSynchronize(stream_), "copy from the device");
}

void Context::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes != 0 && to != from)
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy on the device");
}

void Context::clear(void* memory, std::size_t bytes) const {
  if (bytes != 0) check_cuda(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
}

}  // namespace kvs::cuda
