// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cusolverDn.h>

#include <string_view>

namespace kvs::cuda {

/// Converts CUDA's statuses to Errors; no other function does. Throws kEnvironment if memory, the driver or the device
/// is missing, else kInternal. `what` names the call. Errors of kernels appear at a later call on the same stream.
void check_cuda(cudaError_t status, std::string_view what);
/// Like check_cuda(), for the libraries: kEnvironment if they could not allocate, else kInternal.
void check_cublas(cublasStatus_t status, std::string_view what);
void check_cufft(cufftResult status, std::string_view what);
void check_cusolver(cusolverStatus_t status, std::string_view what);

/// Throws Error kInternal unless `holds`: the caller of an operation passed shapes that do not match.
void require(bool holds, std::string_view operation, std::string_view expected);

}  // namespace kvs::cuda
