#pragma once

#include <string>

namespace kvs {

// The libraries that round, each with what decides how: results of two runs are the same bits only with the same.

/// "oneDNN 3.0.1, isa 0x7f, fpmath 0": its version, the instruction sets that it uses (dnnl_cpu_isa_t, of the processor
/// and the environment), and whether f32 may be rounded before products (dnnl_fpmath_mode_t).
std::string product_library();
/// "OpenBLAS 0.3.21 … MAX_THREADS=64, SkylakeX": its configuration and the processor that its kernels are for. Loads
/// it.
/// @throws Error kEnvironment if there is no room, or it is missing
std::string decomposition_library();
/// "glibc 2.36": exponentials and sines.
std::string function_library();

}  // namespace kvs
