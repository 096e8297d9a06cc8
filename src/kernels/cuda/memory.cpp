// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/error.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cudnn_planner.h"
#include "kernels/cuda/staging.h"

namespace kvs::inline kernels {
namespace {

DType checked_type(DType type) {
  if (type != DType::kF32 && type != DType::kBF16)
    throw Error(ErrorCode::kUsage, "compute type", "found " + std::string(name_of(type)) + ", expected f32 or bf16");
  return type;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

CudaBackend::CudaBackend(DType compute_type)
    : type_(checked_type(compute_type)),
      gemm_(context_, type_, variable("KVS_GEMM_TABLE")),
      fused_attention_(cuda::attention_choice(variable("KVS_ATTENTION")),
                       [this] { return cuda::make_cudnn_planner(context_.stream()); }),
      spectrum_attention_(context_) {}

void* CudaBackend::allocate(std::size_t bytes) { return context_.allocate(bytes); }
void CudaBackend::release(void* memory) noexcept { context_.release(memory); }
void CudaBackend::upload(void* to, const void* from_host, std::size_t bytes) { context_.upload(to, from_host, bytes); }
void CudaBackend::download(void* to_host, const void* from, std::size_t bytes) {
  context_.download(to_host, from, bytes);
}
void CudaBackend::copy(void* to, const void* from, std::size_t bytes) { context_.copy(to, from, bytes); }
std::size_t CudaBackend::spare_threads() const { return std::max(1U, std::thread::hardware_concurrency() / 2); }
std::unique_ptr<Staging> CudaBackend::make_staging(std::size_t values, DType type) {
  return cuda::make_staging(context_, values, type);
}

}  // namespace kvs::inline kernels
