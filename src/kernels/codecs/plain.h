// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

struct PlainF32 {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    std::memcpy(to, x, count * sizeof(float));
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    std::memcpy(x, from, count * sizeof(float));
  }
};

struct Half {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) put_half(to + 2 * i, x[i]);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    take_halves(from, count, x);
  }
};

struct Bfloat {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = bits_of(x[i]);
      put(to + 2 * i, static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16));
    }
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    for (std::size_t i = 0; i < count; ++i)
      x[i] = float_of(static_cast<std::uint32_t>(loaded<std::uint16_t>(from + 2 * i)) << 16);
  }
};

}  // namespace
}  // namespace kvs::codecs
