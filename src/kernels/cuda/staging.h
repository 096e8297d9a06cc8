// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/dtype.h"
#include "kernels/cuda/context.h"
#include "kernels/device_memory.h"

namespace kvs::cuda {

/// Makes a staging that converts on the context's stream into its own device memory. It copies to page-locked host
/// memory on its own stream, so that the copy overlaps with later work.
/// @throws Error kUsage for a type other than f32, f16 and bf16; kEnvironment if memory runs out.
std::unique_ptr<Staging> make_staging(const Context& context, std::size_t values, DType type);

}  // namespace kvs::cuda
