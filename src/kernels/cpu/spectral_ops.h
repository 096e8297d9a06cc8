// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/spectral_ops.h"

namespace kvs::inline kernels {

/// Makes SpectralOps for memory that the processor can read: transforms in double precision, OpenMP over heads and
/// channel blocks. Results do not depend on the number of threads. Not thread-safe (it keeps its workspaces).
std::unique_ptr<SpectralOps> make_cpu_spectral_ops();

}  // namespace kvs::inline kernels
