// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "core/error.h"

namespace kvs::cpu {

/// Converts a size: BLAS and LAPACK use 32-bit sizes.
inline int to_int(std::size_t value) {
  if (value > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ErrorCode::kUnsupported, "linear algebra",
                "found a matrix with " + std::to_string(value) + " rows or columns, expected fewer than 2^31");
  return static_cast<int>(value);
}

/// Converts LAPACK's status to an Error: kEnvironment if memory ran out, kInternal for a wrong argument, kData if the
/// iteration failed.
inline void check_lapack(int info, const char* routine) {
  constexpr int kNoWorkspace = -1010, kNoCopy = -1011;  // LAPACKE's codes
  if (info == kNoWorkspace || info == kNoCopy)
    throw Error(ErrorCode::kEnvironment, routine, "out of memory for the decomposition");
  if (info < 0) throw Error(ErrorCode::kInternal, routine, "argument " + std::to_string(-info) + " is not valid");
  if (info > 0) throw Error(ErrorCode::kData, routine, "did not converge (info " + std::to_string(info) + ")");
}

}  // namespace kvs::cpu
