#pragma once

#include <memory>

#include "core/dtype.h"
#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// Converts on the context's stream into device memory of its own, and copies to page-locked host memory on a stream of
/// its own, so that the copy overlaps with what is queued after it.
/// @throws Error kUsage for another type than f32, f16 and bf16; kEnvironment if there is no memory.
std::unique_ptr<Staging> make_staging(const Context& context, std::size_t values, DType type);

}  // namespace kvs::cuda
