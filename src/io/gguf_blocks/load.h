// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

namespace kvs::blocks {

static_assert(std::endian::native == std::endian::little, "model files are little-endian and are read in place");

template <class T>
T load(const std::byte* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline float load_f16(const std::byte* bytes) noexcept { return f16_to_f32(load<std::uint16_t>(bytes)); }

}  // namespace kvs::blocks
