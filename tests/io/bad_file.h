// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "core/error.h"

namespace kvs {

/// A hostile file, as a test's parameter.
struct Bad {
  const char* name;
  std::string bytes;
  const char* message;
  ErrorCode code = ErrorCode::kInput;
};
inline void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

}  // namespace kvs
