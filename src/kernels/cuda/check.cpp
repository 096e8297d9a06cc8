// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/check.h"

#include <string>

#include "core/error.h"

namespace kvs::cuda {
namespace {

/// Returns true for a status caused by this machine, not by this program.
bool is_environment(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void fail(bool environment, std::string_view library, std::string_view what, const std::string& status) {
  throw Error(environment ? ErrorCode::kEnvironment : ErrorCode::kInternal, library,
              std::string(what) + " failed: " + status);
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) fail(is_environment(status), "cuda", what, cudaGetErrorString(status));
}

void check_cublas(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED, "cuBLAS", what,
       cublasGetStatusString(status));
}

void check_cufft(cufftResult status, std::string_view what) {
  if (status != CUFFT_SUCCESS)
    fail(status == CUFFT_ALLOC_FAILED, "cuFFT", what, "status " + std::to_string(static_cast<int>(status)));
}

void check_cusolver(cusolverStatus_t status, std::string_view what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  fail(status == CUSOLVER_STATUS_ALLOC_FAILED || status == CUSOLVER_STATUS_NOT_INITIALIZED, "cuSOLVER", what,
       "status " + std::to_string(static_cast<int>(status)));
}

void require(bool holds, std::string_view operation, std::string_view expected) {
  if (!holds) throw Error(ErrorCode::kInternal, operation, "shapes do not fit: expected " + std::string(expected));
}

}  // namespace kvs::cuda
