// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__AVX2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/row_format.h"

// Building blocks of codecs. Everything in this folder has internal linkage, so that includers share no function: they
// are compiled for different instruction sets and for the GPU (cpu/simd/loops.h). Compile without contraction to fused
// multiply-adds, so that codes equal the engines' codes bit for bit. A codec handles one group of values: encode(x,
// count, bytes) and decode(bytes, count, x).
#define KVS_CODEC KVS_HOST_DEVICE inline

namespace kvs::codecs {
namespace {  // NOLINT: see above

KVS_CODEC std::uint32_t bits_of(float value) noexcept {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
KVS_CODEC float float_of(std::uint32_t bits) noexcept {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

KVS_CODEC float magnitude(float x) noexcept { return float_of(bits_of(x) & 0x7fffffffU); }
KVS_CODEC float larger_of(float a, float b) noexcept { return a > b ? a : b; }
KVS_CODEC float smaller_of(float a, float b) noexcept { return a < b ? a : b; }
/// Clamps x to [low, high]. NaN becomes `low`.
KVS_CODEC float clamped(float x, float low, float high) noexcept { return x >= low ? smaller_of(x, high) : low; }
/// Rounds to the nearest integer, ties to even. Needs |x| < 2^22.
KVS_CODEC float round_even(float x) noexcept {
  const float shifted = x + 0x1.8p23F;
  return shifted - 0x1.8p23F;
}
/// Rounds to the nearest integer, ties away from zero, like C's roundf. Needs |x| < 2^22.
KVS_CODEC float round_away(float x) noexcept {
  const float whole = static_cast<float>(static_cast<int>(x)), rest = x - whole;
  return whole + (rest >= 0.5F ? 1.0F : 0.0F) - (rest <= -0.5F ? 1.0F : 0.0F);
}
KVS_CODEC unsigned code_of(float whole) noexcept { return static_cast<unsigned>(static_cast<int>(whole)); }

KVS_CODEC float half_value(std::uint16_t bits) noexcept {
#if defined(__AVX2__) && !defined(__CUDACC__)
  return _cvtsh_ss(bits);
#else
  const std::uint32_t size = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t normal = size + (size < 0x0f800000U ? 112U << 23 : 224U << 23);  // or infinity, NaN
  const float subnormal = float_of(size + 0x38800000U) - 0x1p-14F;
  const std::uint32_t widened = size < 0x00800000U ? bits_of(subnormal) : normal;
  return float_of(widened | static_cast<std::uint32_t>(bits & 0x8000U) << 16);
#endif
}
/// Rounds to nearest even. Overflow becomes infinity.
KVS_CODEC std::uint16_t half_bits(float value) noexcept {
  const std::uint32_t bits = bits_of(value), size = bits & 0x7fffffffU;
  const std::uint32_t rounded = (size + 0xfffU + ((size >> 13) & 1U)) >> 13;
  const std::uint32_t subnormal = bits_of(float_of(size) * 0x1p24F + 0x1.8p23F) & 0x7ffU;
  const std::uint32_t normal = rounded - (112U << 10);
  std::uint32_t result = size < 0x38800000U ? subnormal : normal;
  if (size >= 0x477ff000U) result = 0x7c00U;
  if (size > 0x7f800000U) result = 0x7e00U;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}

template <class T>
KVS_CODEC T loaded(const std::uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <class T>
KVS_CODEC void put(std::uint8_t* to, T value) noexcept {
  std::memcpy(to, &value, sizeof(value));
}
KVS_CODEC float half_at(const std::uint8_t* from) noexcept { return half_value(loaded<std::uint16_t>(from)); }
KVS_CODEC void put_half(std::uint8_t* to, float value) noexcept { put(to, half_bits(value)); }
/// x[i] = half_at(from + 2 i)
KVS_CODEC void take_halves(const std::uint8_t* from, std::size_t count, float* x) noexcept {
  std::size_t i = 0;
#if defined(__AVX2__) && !defined(__CUDACC__)
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(x + i, _mm256_cvtph_ps(loaded<__m128i>(from + 2 * i)));
#endif
  for (; i < count; ++i) x[i] = half_at(from + 2 * i);
}

// Decoding in vectors of eight values. Compilers make vectors of four from the scalar loops. A GPU has a thread for
// each group.
#ifndef __CUDACC__
inline constexpr std::size_t kWide = 8;
using WideInts = std::int32_t __attribute__((vector_size(4 * kWide)));
using WideFloats = float __attribute__((vector_size(4 * kWide)));
using WideBytes = std::uint8_t __attribute__((vector_size(kWide)));
using WideSignedBytes = std::int8_t __attribute__((vector_size(kWide)));
/// Returns eight integers of one byte each as floats, after `change`, an operation on WideInts.
template <class Bytes, class Change>
WideFloats wide_at(const std::uint8_t* from, Change change) noexcept {
#if defined(__AVX2__)  // compilers widen a vector of bytes value by value
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m256i integers = std::is_same_v<Bytes, WideBytes> ? _mm256_cvtepu8_epi32(bytes) : _mm256_cvtepi8_epi32(bytes);
  return __builtin_convertvector(change(reinterpret_cast<WideInts>(integers)), WideFloats);
#else
  return __builtin_convertvector(change(__builtin_convertvector(loaded<Bytes>(from), WideInts)), WideFloats);
#endif
}
#endif

/// An fp8 format with `Mantissa` bits of mantissa, 7 − `Mantissa` bits of exponent and the largest value kMax: e4m3fn
/// or e5m2.
template <unsigned Mantissa>
struct Fp8 {
  static_assert(Mantissa == 2 || Mantissa == 3);
  static constexpr float kMax = Mantissa == 3 ? 448.0F : 57344.0F;
  static constexpr float kMinNormal = Mantissa == 3 ? 0x1p-6F : 0x1p-14F;
  static constexpr float kSubnormals = Mantissa == 3 ? 0x1p9F : 0x1p16F;  // in 1
  static constexpr unsigned kShift = 23 - Mantissa;                       // from the mantissa of f32
  static constexpr std::uint32_t kBias = Mantissa == 3 ? 120 : 112;       // 127 less the format's

  /// Rounds to nearest even, saturates at ±kMax.
  KVS_CODEC static std::uint8_t bits(float x) noexcept {
    const float size = smaller_of(magnitude(x), kMax);
    const std::uint32_t wide = bits_of(size);
    const std::uint32_t normal =
        ((wide + ((1U << (kShift - 1)) - 1) + ((wide >> kShift) & 1U)) >> kShift) - (kBias << Mantissa);
    const std::uint32_t subnormal = bits_of(size * kSubnormals + 0x1.8p23F) & ((2U << Mantissa) - 1);
    return static_cast<std::uint8_t>((size < kMinNormal ? subnormal : normal) | ((bits_of(x) >> 24) & 0x80U));
  }
  KVS_CODEC static float value(std::uint8_t bits) noexcept {
    const std::uint32_t size = bits & 0x7fU;
    const float normal = float_of((size << kShift) + (kBias << 23)),
                subnormal = static_cast<float>(size) * (1 / kSubnormals);
    return float_of(bits_of(size < 1U << Mantissa ? subnormal : normal) |
                    (static_cast<std::uint32_t>(bits & 0x80U) << 24));
  }
};
using Fp8E4m3 = Fp8<3>;
using Fp8E5m2 = Fp8<2>;

/// Converts to fp4 with 2 exponent bits and 1 mantissa bit (e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6): rounds to nearest even,
/// saturates at ±6.
KVS_CODEC unsigned e2m1_bits(float x) noexcept {
  const float size = magnitude(x);
  const auto over = [](bool is_over) { return is_over ? 1U : 0U; };
  const unsigned code = over(size > 0.25F) + over(size >= 0.75F) + over(size > 1.25F) + over(size >= 1.75F) +
                        over(size > 2.5F) + over(size >= 3.5F) + over(size > 5.0F);
  return code | ((bits_of(x) >> 28) & 8U);
}
KVS_CODEC float e2m1_value(unsigned code) noexcept {
  const std::uint32_t size = code & 7U;
  const float normal = float_of((size << 22) + (126U << 23)), subnormal = static_cast<float>(size) * 0.5F;
  return float_of(bits_of(size < 2 ? subnormal : normal) | (static_cast<std::uint32_t>(code & 8U) << 28));
}

struct Extremes {
  float least, most;
};
KVS_CODEC Extremes extremes(const float* x, std::size_t count) noexcept {
  Extremes found{x[0], x[0]};
  for (std::size_t i = 1; i < count; ++i) found = {smaller_of(found.least, x[i]), larger_of(found.most, x[i])};
  return found;
}
KVS_CODEC float largest_magnitude(const float* x, std::size_t count) noexcept {
  float most = 0;
  for (std::size_t i = 0; i < count; ++i) most = larger_of(most, magnitude(x[i]));
  return most;
}
/// Returns the value with the largest magnitude; the first one on a tie.
KVS_CODEC float furthest(const float* x, std::size_t count) noexcept {
  float most = 0, value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float size = magnitude(x[i]);
    value = size > most ? x[i] : value;
    most = larger_of(most, size);
  }
  return value;
}
KVS_CODEC float inverse_or_zero(float d) noexcept { return d == 0 ? 0 : 1 / d; }

// Stores `count` codes of `Bits` bits. Each byte holds codes from different parts of the group, so that loops have unit
// stride. With 3 bits, three bytes hold eight consecutive codes.
template <unsigned Bits, class Code>
KVS_CODEC void put_codes(std::uint8_t* to, std::size_t count, Code code) noexcept {
  if constexpr (Bits == 3) {
    for (std::size_t i = 0; i < count; i += 8) {
      unsigned word = 0;
      for (unsigned n = 0; n < 8; ++n) word |= code(i + n) << (3 * n);
      for (unsigned n = 0; n < 3; ++n) to[i / 8 * 3 + n] = static_cast<std::uint8_t>(word >> (8 * n));
    }
  } else {
    constexpr unsigned kParts = 8 / Bits;
    const std::size_t bytes = count / kParts;
    for (std::size_t i = 0; i < bytes; ++i) {
      unsigned byte = 0;
      for (unsigned part = 0; part < kParts; ++part) byte |= code(part * bytes + i) << (Bits * part);
      to[i] = static_cast<std::uint8_t>(byte);
    }
  }
}
/// Calls use(index, code) for each code.
template <unsigned Bits, class Use>
KVS_CODEC void each_code(const std::uint8_t* from, std::size_t count, Use use) noexcept {
  if constexpr (Bits == 3) {
    for (std::size_t i = 0; i < count; i += 8) {
      const std::uint8_t* const at = from + i / 8 * 3;
      const unsigned word = at[0] | static_cast<unsigned>(at[1]) << 8 | static_cast<unsigned>(at[2]) << 16;
      for (unsigned n = 0; n < 8; ++n) use(i + n, (word >> (3 * n)) & 7U);
    }
  } else {
    constexpr unsigned kParts = 8 / Bits;
    const std::size_t bytes = count / kParts;
    for (unsigned part = 0; part < kParts; ++part)
#ifndef __CUDACC__
#pragma GCC unroll 1  // sixteen steps would become scalar code
#endif
      for (std::size_t i = 0; i < bytes; ++i)
        use(part * bytes + i, static_cast<unsigned>(from[i] >> (Bits * part)) & ((1U << Bits) - 1));
  }
}

/// x[i] = value(code of i), for codes of 2 or 4 bits. `value` takes and returns a float or WideFloats.
template <unsigned Bits, class Value>
KVS_CODEC void take_codes(const std::uint8_t* from, std::size_t count, float* x, Value value) noexcept {
  constexpr unsigned kParts = 8 / Bits;
  const std::size_t bytes = count / kParts;
#ifdef __CUDACC__
  const std::size_t rest = bytes;
#else
  const std::size_t rest = bytes % kWide;
  for (std::size_t i = 0; i < bytes - rest; i += kWide)
    for (unsigned part = 0; part < kParts; ++part) {
      const WideFloats codes = wide_at<WideBytes>(
          from + i, [&](WideInts byte) { return (byte >> static_cast<int>(Bits * part)) & ((1 << Bits) - 1); });
      put(reinterpret_cast<std::uint8_t*>(x + part * bytes + i), value(codes));
    }
#endif
  from += bytes - rest;
  x += bytes - rest;
  for (unsigned part = 0; part < kParts; ++part)
    for (std::size_t i = 0; i < rest; ++i) {
      const unsigned code = static_cast<unsigned>(from[i] >> (Bits * part)) & ((1U << Bits) - 1);
      x[part * bytes + i] = value(static_cast<float>(code));
    }
}

}  // namespace
}  // namespace kvs::codecs
