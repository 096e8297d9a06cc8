#pragma once

#include <memory>

#include "kernels/backend.h"

namespace kvs {

/// Whether this program was built with CUDA and a usable device is present.
bool cuda_available() noexcept;

/// @throws Error kEnvironment if the device cannot be used or this program was built without CUDA.
std::unique_ptr<Backend> make_cuda_backend(DType compute_type);

}  // namespace kvs
