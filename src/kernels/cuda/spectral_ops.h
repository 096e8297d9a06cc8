// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/cuda/context.h"
#include "kernels/spectral_ops.h"

namespace kvs::cuda {

/// Makes SpectralOps with cuFFT in double precision. Not thread-safe. `context` must outlive the result.
std::unique_ptr<SpectralOps> make_spectral_ops(const Context& context);

}  // namespace kvs::cuda
