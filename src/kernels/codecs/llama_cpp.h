// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

// llama.cpp's types of cache rows. io/gguf_blocks decodes the blocks of GGUF weights.

/// llama.cpp, ggml-quants.c: d in f16, then the codes.
struct Q8_0 {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float d = largest_magnitude(x, count) / 127, inverse = inverse_or_zero(d);
    put_half(to, d);
    for (std::size_t i = 0; i < count; ++i)
      to[2 + i] = static_cast<std::uint8_t>(static_cast<int>(round_away(clamped(x[i] * inverse, -127, 127))));
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float d = half_at(from);
#ifdef __CUDACC__
    const std::size_t rest = count;
#else
    const std::size_t rest = count % kWide;
    for (std::size_t i = 0; i < count - rest; i += kWide)
      put(reinterpret_cast<std::uint8_t*>(x + i),
          wide_at<WideSignedBytes>(from + 2 + i, [](WideInts code) { return code; }) * d);
#endif
    from += 2 + count - rest;
    x += count - rest;
    for (std::size_t i = 0; i < rest; ++i) x[i] = static_cast<float>(static_cast<std::int8_t>(from[i])) * d;
  }
};

/// Stores the fifth bits of 32 codes as one word, followed by the lower four bits.
template <class Code>
KVS_CODEC void put_five_bits(std::uint8_t* to, Code code) noexcept {
  std::uint32_t high = 0;
  for (unsigned i = 0; i < 32; ++i) high |= static_cast<std::uint32_t>(code(i) >> 4) << i;
  put(to, high);
  put_codes<4>(to + 4, 32, [&](std::size_t i) { return code(i) & 15U; });
}
template <class Use>
KVS_CODEC void each_five_bits(const std::uint8_t* from, Use use) noexcept {
  const auto high = loaded<std::uint32_t>(from);
  each_code<4>(from + 4, 32, [&](std::size_t i, unsigned code) { use(i, code | ((high >> i) & 1U) << 4); });
}

/// q4_0 and q5_0: the value with the largest magnitude gets code 0 = −2^(Bits − 1).
template <unsigned Bits>
struct SymmetricBlock {
  static constexpr float kLevels = 1U << (Bits - 1);

  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float d = furthest(x, count) / -kLevels, inverse = inverse_or_zero(d);
    put_half(to, d);
    const auto code = [&](std::size_t i) {
      return code_of(clamped(x[i] * inverse + (kLevels + 0.5F), 0, 2 * kLevels - 1));
    };
    if constexpr (Bits == 5)
      put_five_bits(to + 2, code);
    else
      put_codes<4>(to + 2, count, code);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float d = half_at(from);
    if constexpr (Bits == 5)
      each_five_bits(from + 2, [&](std::size_t i, unsigned code) { x[i] = (static_cast<float>(code) - kLevels) * d; });
    else
      take_codes<4>(from + 2, count, x, [&](auto code) { return (code - kLevels) * d; });
  }
};

/// q4_1 and q5_1: d and the minimum in f16.
template <unsigned Bits>
struct AffineBlock {
  static constexpr float kLevels = (1U << Bits) - 1;

  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const auto [least, most] = extremes(x, count);
    const float d = (most - least) / kLevels, inverse = inverse_or_zero(d), low = least;
    put_half(to, d);
    put_half(to + 2, low);
    const auto code = [&](std::size_t i) { return code_of(clamped((x[i] - low) * inverse + 0.5F, 0, kLevels)); };
    if constexpr (Bits == 5)
      put_five_bits(to + 4, code);
    else
      put_codes<4>(to + 4, count, code);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float d = half_at(from), low = half_at(from + 2);
    if constexpr (Bits == 5)
      each_five_bits(from + 4, [&](std::size_t i, unsigned code) { x[i] = static_cast<float>(code) * d + low; });
    else
      take_codes<4>(from + 4, count, x, [&](auto code) { return code * d + low; });
  }
};

/// Without importance weights: codes are chosen with d = max / −127; then d is refitted with weights x² for the codes.
struct Iq4Nl {
  KVS_CODEC static float value(unsigned code) noexcept {
    constexpr std::int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return static_cast<float>(kValues[code]);
  }
  /// Returns the nearest code; on a tie the upper code.
  KVS_CODEC static unsigned nearest(float x) noexcept {
    unsigned code = 0;
    for (unsigned n = 1; n < 16; ++n) code = x - value(n - 1) < value(n) - x ? code : n;
    return code;
  }
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float top = furthest(x, count), inverse = inverse_or_zero(top / -127);
    if (magnitude(top) < 1e-15F) return std::memset(to, 0, 2 + count / 2), void();
    put_codes<4>(to + 2, count, [&](std::size_t i) { return nearest(x[i] * inverse); });
    float products = 0, squares = 0;
    float values[32];
    each_code<4>(to + 2, count, [&](std::size_t i, unsigned code) { values[i] = value(code); });
    for (std::size_t i = 0; i < count; ++i) {
      const float weight = x[i] * x[i];
      products += weight * values[i] * x[i];
      squares += weight * values[i] * values[i];
    }
    put_half(to, squares > 0 ? products / squares : 0);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float d = half_at(from);
    each_code<4>(from + 2, count, [&](std::size_t i, unsigned code) { x[i] = value(code) * d; });
  }
};

}  // namespace
}  // namespace kvs::codecs
