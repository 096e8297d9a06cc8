// SPDX-License-Identifier: Apache-2.0
#include "kernels/libraries.h"

#include <dnnl.h>
#include <gnu/libc-version.h>

#include <cstdio>
#include <dnnl.hpp>

#include "kernels/cpu/lapack_library.h"

namespace kvs::inline kernels {

std::string product_library() {
  const dnnl_version_t* const version = dnnl::version();
  char text[96];
  std::snprintf(text, sizeof text, "oneDNN %d.%d.%d, isa %#x, fpmath %d", version->major, version->minor,
                version->patch, static_cast<unsigned>(dnnl::get_effective_cpu_isa()),
                static_cast<int>(dnnl::get_default_fpmath_mode()));
  return text;
}

std::string decomposition_library() { return cpu::lapack().config(); }

std::string function_library() { return std::string("glibc ") + ::gnu_get_libc_version(); }

}  // namespace kvs::inline kernels
