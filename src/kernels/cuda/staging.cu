// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

class CudaStaging final : public Staging {
 public:
  CudaStaging(const Context& context, std::size_t values, DType type)
      : context_(context), type_(type), values_(values), device_(context, values * item_size(type)) {
    const std::size_t bytes = values * item_size(type);
    const cudaError_t status = cudaMallocHost(&host_, bytes == 0 ? 1 : bytes);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw Error(ErrorCode::kEnvironment, "cuda", "out of page-locked memory for " + std::to_string(bytes) + " bytes");
    }
    check_cuda(status, "cudaMallocHost");
    try {
      check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
      check_cuda(cudaEventCreateWithFlags(&converted_, cudaEventDisableTiming), "cudaEventCreate");
      check_cuda(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming | cudaEventBlockingSync), "cudaEventCreate");
    } catch (...) {
      release_handles();
      throw;
    }
  }
  ~CudaStaging() override { release_handles(); }
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  void start(std::span<const float> from) override {
    require(from.size() <= values_, "staging", "at most " + std::to_string(values_) + " values");
    bytes_ = from.size() * item_size(type_);
    if (from.empty()) return;
    if (type_ == DType::kF32)
      convert_to<float>(from);
    else if (type_ == DType::kF16)
      convert_to<__half>(from);
    else
      convert_to<__nv_bfloat16>(from);
    check_cuda(cudaEventRecord(converted_, context_.stream()), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream_, converted_), "cudaStreamWaitEvent");
    check_cuda(cudaMemcpyAsync(host_, device_.data(), bytes_, cudaMemcpyDeviceToHost, stream_), "copy from the device");
    check_cuda(cudaEventRecord(copied_, stream_), "cudaEventRecord");
  }

  std::span<const std::byte> wait() override {
    check_cuda(cudaEventSynchronize(copied_), "copy from the device");
    return {static_cast<const std::byte*>(host_), bytes_};
  }

 private:
  template <class T>
  void convert_to(std::span<const float> from) {
    convert(context_.stream(), from.data(), from.size(), reinterpret_cast<T*>(device_.data()));
  }

  void release_handles() noexcept {
    if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);  // a copy may still run
    if (converted_ != nullptr) (void)cudaEventDestroy(converted_);
    if (copied_ != nullptr) (void)cudaEventDestroy(copied_);
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
    (void)cudaFreeHost(host_);
  }

  const Context& context_;
  DType type_;
  std::size_t values_, bytes_ = 0;
  DeviceArray<std::byte> device_;
  void* host_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t converted_ = nullptr, copied_ = nullptr;
};

}  // namespace

std::unique_ptr<Staging> make_staging(const Context& context, std::size_t values, DType type) {
  if (type == DType::kF64)
    throw Error(ErrorCode::kUsage, "staging", "found " + std::string(name_of(type)) + ", expected f32, f16 or bf16");
  return std::make_unique<CudaStaging>(context, values, type);
}

}  // namespace kvs::cuda
