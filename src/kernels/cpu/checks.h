// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace kvs::cpu {

/// Throws Error kInternal unless `holds`: the caller of a backend operation passed shapes that do not match.
inline void require(bool holds, std::string_view operation, std::string_view expected) {
  if (!holds) throw Error(ErrorCode::kInternal, operation, "shapes do not fit: expected " + std::string(expected));
}

}  // namespace kvs::cpu
