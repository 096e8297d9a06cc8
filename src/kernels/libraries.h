// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvs::inline kernels {

// Libraries whose rounding affects results, each with the settings that affect it. Two runs give equal bits only with
// equal libraries.

/// Returns e.g. "oneDNN 3.0.1, isa 0x7f, fpmath 0": version, instruction sets in use (dnnl_cpu_isa_t, from processor
/// and environment), and whether f32 may be rounded before products (dnnl_fpmath_mode_t).
std::string product_library();
/// Returns e.g. "OpenBLAS 0.3.21 … MAX_THREADS=64, SkylakeX": its configuration and the target processor of its
/// kernels. Loads the library. @throws Error kEnvironment if the library is missing or memory runs out
std::string decomposition_library();
/// Returns e.g. "glibc 2.36", the library of exponentials and sines.
std::string function_library();

}  // namespace kvs::inline kernels
