#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/row_format.h"

// Rows of values to bytes and back, one source for all instruction sets of the processor and for the GPU. Everything
// has internal linkage: no two includers share a function (cpu/simd/loops.h says why). To be compiled without
// contraction to fused multiply-adds: codes are those of the engines bit for bit.
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
/// NaN becomes `low`.
KVS_CODEC float clamped(float x, float low, float high) noexcept { return x >= low ? smaller_of(x, high) : low; }
/// To the nearest, ties to even; |x| < 2^22.
KVS_CODEC float round_even(float x) noexcept {
  const float shifted = x + 0x1.8p23F;
  return shifted - 0x1.8p23F;
}
/// To the nearest, ties away from zero, as C's roundf; |x| < 2^22.
KVS_CODEC float round_away(float x) noexcept {
  const float whole = static_cast<float>(static_cast<int>(x)), rest = x - whole;
  return whole + (rest >= 0.5F ? 1.0F : 0.0F) - (rest <= -0.5F ? 1.0F : 0.0F);
}
KVS_CODEC unsigned code_of(float whole) noexcept { return static_cast<unsigned>(static_cast<int>(whole)); }

KVS_CODEC float half_value(std::uint16_t bits) noexcept {
  const std::uint32_t size = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t normal = size + (size < 0x0f800000U ? 112U << 23 : 224U << 23);  // or infinity, NaN
  const float subnormal = float_of(size + 0x38800000U) - 0x1p-14F;
  const std::uint32_t widened = size < 0x00800000U ? bits_of(subnormal) : normal;
  return float_of(widened | static_cast<std::uint32_t>(bits & 0x8000U) << 16);
}
/// To nearest even; what is too large becomes infinite.
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

/// fp8 with 4 bits of exponent and 3 of mantissa (e4m3fn): to nearest even, saturating at ±448.
KVS_CODEC std::uint8_t e4m3_bits(float x) noexcept {
  const std::uint32_t bits = bits_of(x);
  const float size = smaller_of(magnitude(x), 448.0F);
  const std::uint32_t wide = bits_of(size);
  const std::uint32_t normal = ((wide + 0x7ffffU + ((wide >> 20) & 1U)) >> 20) - (120U << 3);
  const std::uint32_t subnormal = bits_of(size * 0x1p9F + 0x1.8p23F) & 0xfU;
  return static_cast<std::uint8_t>((size < 0x1p-6F ? subnormal : normal) | ((bits >> 24) & 0x80U));
}
KVS_CODEC float e4m3_value(std::uint8_t bits) noexcept {
  const std::uint32_t size = bits & 0x7fU;
  const float normal = float_of((size << 20) + (120U << 23)), subnormal = static_cast<float>(size) * 0x1p-9F;
  return float_of(bits_of(size < 8 ? subnormal : normal) | (static_cast<std::uint32_t>(bits & 0x80U) << 24));
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
/// The value of largest magnitude, the first of several.
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

// Codes of Bits bits of a group of `count`: parts of it lie over each other, so that loops over them have no steps.
// 3 bits: eight codes in three bytes.
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
/// Calls use(index, code) for each.
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
      for (std::size_t i = 0; i < bytes; ++i)
        use(part * bytes + i, static_cast<unsigned>(from[i] >> (Bits * part)) & ((1U << Bits) - 1));
  }
}

// What follows codes one group: encode(x, count, bytes), decode(bytes, count, x).

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
    for (std::size_t i = 0; i < count; ++i) x[i] = half_at(from + 2 * i);
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

/// llama.cpp, ggml-quants.c: f16 d, then codes.
struct Q8_0 {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float d = largest_magnitude(x, count) / 127, inverse = inverse_or_zero(d);
    put_half(to, d);
    for (std::size_t i = 0; i < count; ++i)
      to[2 + i] = static_cast<std::uint8_t>(static_cast<int>(round_away(clamped(x[i] * inverse, -127, 127))));
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float d = half_at(from);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(static_cast<std::int8_t>(from[2 + i])) * d;
  }
};

/// The fifth bits of 32 codes as one word before their lower four.
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

/// q4_0 and q5_0: the value of largest magnitude is code 0 = −2^(Bits − 1).
template <unsigned Bits>
struct Signed {
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
    const auto use = [&](std::size_t i, unsigned code) { x[i] = (static_cast<float>(code) - kLevels) * d; };
    if constexpr (Bits == 5)
      each_five_bits(from + 2, use);
    else
      each_code<4>(from + 2, count, use);
  }
};

/// q4_1 and q5_1: f16 d and minimum.
template <unsigned Bits>
struct Affine {
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
    const auto use = [&](std::size_t i, unsigned code) { x[i] = static_cast<float>(code) * d + low; };
    if constexpr (Bits == 5)
      each_five_bits(from + 4, use);
    else
      each_code<4>(from + 4, count, use);
  }
};

/// Without importance weights: codes against max / −127, then d refitted with weights x²; codes are kept.
struct Iq4Nl {
  KVS_CODEC static float value(unsigned code) noexcept {
    constexpr std::int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return static_cast<float>(kValues[code]);
  }
  /// The nearest, of two at the same distance the upper.
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

/// vLLM's fp8 of values that were divided by their scale.
struct E4m3 {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = e4m3_bits(x[i]);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    for (std::size_t i = 0; i < count; ++i) x[i] = e4m3_value(from[i]);
  }
};

/// vLLM, triton_reshape_and_cache_flash.py: a scale per token and head, f32, after the codes.
struct Int8Row {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float scale = larger_of(largest_magnitude(x, count) / 127, 1e-6F), inverse = 1 / scale;
    put(to + count, scale);
    for (std::size_t i = 0; i < count; ++i) {
      const float y = x[i] * inverse, away = y + (bits_of(y) >> 31 != 0 ? -0.5F : 0.5F);
      to[i] = static_cast<std::uint8_t>(static_cast<int>(clamped(away, -128, 127)));
    }
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const auto scale = loaded<float>(from + count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(static_cast<std::int8_t>(from[i])) * scale;
  }
};

struct E4m3Row {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float scale = larger_of(largest_magnitude(x, count) / 448, 1e-6F), inverse = 1 / scale;
    put(to + count, scale);
    for (std::size_t i = 0; i < count; ++i) to[i] = e4m3_bits(x[i] * inverse);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const auto scale = loaded<float>(from + count);
    for (std::size_t i = 0; i < count; ++i) x[i] = e4m3_value(from[i]) * scale;
  }
};

/// vLLM, int4_per_token_head.py, of √b · rotated values: an integer zero in the low four bits of the f32 scale.
/// Deviation: upstream multiplies by √b within the rotation, here it is in the scale of the same codes.
struct Int4Row {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const auto [least, most] = extremes(x, count);
    const float low = least, scale = larger_of((most - low) / 15, 1e-6F), inverse = 1 / scale;
    const float zero = round_away(clamped(-low / scale, 0, 15));
    put(to + count / 2, (bits_of(scale) & ~15U) | code_of(zero));
    put_codes<4>(to, count, [&](std::size_t i) { return code_of(round_away(clamped(x[i] * inverse + zero, 0, 15))); });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const auto word = loaded<std::uint32_t>(from + count / 2);
    const float scale = float_of(word & ~15U), zero = static_cast<float>(word & 15U);
    each_code<4>(from, count, [&](std::size_t i, unsigned code) { x[i] = (static_cast<float>(code) - zero) * scale; });
  }
};

/// vLLM, turboquant: a key's direction in the Lloyd–Max cells of N(0, 1/d), its norm in f16 ("nc": the vector of
/// centroids is divided by its norm). Values: minimum and step in f16, codes by those in f32.
template <unsigned Bits>
struct TurboKey {
  /// Centroids of N(0, 1), ascending.
  KVS_CODEC static float centroid(unsigned code) noexcept {
    constexpr float kFour[8] = {0.12842766F, 0.38813779F, 0.65687991F, 0.94244822F,
                                1.25625754F, 1.61788180F, 2.06844712F, 2.73092224F};
    constexpr float kThree[4] = {0.24498360F, 0.75564553F, 1.34318004F, 2.15034958F};
    constexpr unsigned kHalf = 1U << (Bits - 1);
    const unsigned index = code < kHalf ? kHalf - 1 - code : code - kHalf;
    const float size = Bits == 4 ? kFour[index & 7U] : kThree[index & 3U];
    return code < kHalf ? -size : size;
  }
  KVS_CODEC static unsigned cell(float x) noexcept {
    unsigned code = 0;
    for (unsigned n = 1; n < 1U << Bits; ++n) code += x >= (centroid(n - 1) + centroid(n)) / 2 ? 1U : 0U;
    return code;
  }
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    float squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += x[i] * x[i];
    const float norm = std::sqrt(squares), factor = std::sqrt(static_cast<float>(count)) / (norm + 1e-8F);
    put_half(to, norm);
    put_codes<Bits>(to + 2, count, [&](std::size_t i) { return cell(x[i] * factor); });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    each_code<Bits>(from + 2, count, [&](std::size_t i, unsigned code) { x[i] = centroid(code); });
    float squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += x[i] * x[i];
    const float factor = half_at(from) / std::sqrt(squares);
    for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
  }
};

template <unsigned Bits>
struct TurboValue {
  static constexpr float kLevels = (1U << Bits) - 1;

  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const auto [least, most] = extremes(x, count);
    const float low = least, step = larger_of((most - low) / kLevels, 1e-8F);
    put_half(to, low);
    put_half(to + 2, step);
    put_codes<Bits>(to + 4, count,
                    [&](std::size_t i) { return code_of(clamped((x[i] - low) / step + 0.5F, 0, kLevels)); });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float low = half_at(from), step = half_at(from + 2);
    each_code<Bits>(from + 4, count,
                    [&](std::size_t i, unsigned code) { x[i] = static_cast<float>(code) * step + low; });
  }
};

/// KIVI, new_pack.py, and QuaRot, kv_cache.py: minimum and step rounded to f16, then the codes from them. Across tokens
/// the minima, the steps and each byte of the codes lie side by side for all channels.
/// @tparam Floor  the least range, in 1e-5
template <unsigned Bits, int Floor>
struct Stepped {
  static constexpr float kLevels = (1U << Bits) - 1;

  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const auto [least, most] = extremes(x, count);
    put_half(to, least);
    put_half(to + 2, larger_of(most - least, static_cast<float>(Floor) * 1e-5F) / kLevels);
    const float low = half_at(to), step = half_at(to + 2);
    put_codes<Bits>(to + 4, count, [&](std::size_t i) {
      return step == 0 ? 0U : code_of(round_even(clamped((x[i] - low) / step, 0, kLevels)));
    });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float low = half_at(from), step = half_at(from + 2);
    each_code<Bits>(from + 4, count,
                    [&](std::size_t i, unsigned code) { x[i] = static_cast<float>(code) * step + low; });
  }

  /// x: [token, channel], all tokens of a group
  KVS_CODEC static void encode_across(const float* x, std::size_t tokens, std::size_t channels, std::uint8_t* to,
                                      float* scratch) noexcept {
    const RowGroup group = group_of(
        {.kind = Bits == 2 ? RowKind::kKivi2 : RowKind::kKivi4, .group = static_cast<std::uint32_t>(tokens)}, tokens);
    auto* const one = reinterpret_cast<std::uint8_t*>(scratch + tokens);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t token = 0; token < tokens; ++token) scratch[token] = x[token * channels + channel];
      encode(scratch, tokens, one);
      std::memcpy(to + 2 * channel, one, 2);
      std::memcpy(to + 2 * (channels + channel), one + 2, 2);
      for (std::size_t i = 4; i < group.bytes; ++i) to[i * channels + channel] = one[i];
    }
  }
  KVS_CODEC static void decode_across(const std::uint8_t* from, std::size_t tokens, std::size_t channels, float* x,
                                      float* scratch) noexcept {
    float *const low = scratch, *const step = scratch + channels;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      low[channel] = half_at(from + 2 * channel);
      step[channel] = half_at(from + 2 * (channels + channel));
    }
    constexpr unsigned kParts = 8 / Bits;
    const std::size_t bytes = tokens / kParts;
    for (unsigned part = 0; part < kParts; ++part)
      for (std::size_t i = 0; i < bytes; ++i) {
        const std::uint8_t* const codes = from + (4 + i) * channels;
        float* const row = x + (part * bytes + i) * channels;
        for (std::size_t channel = 0; channel < channels; ++channel) {
          const unsigned code = static_cast<unsigned>(codes[channel] >> (Bits * part)) & ((1U << Bits) - 1);
          row[channel] = static_cast<float>(code) * step[channel] + low[channel];
        }
      }
  }
};

/// run(codec) with the codec of a kind.
template <class Run>
void with_codec(RowKind kind, Run run) {
  switch (kind) {
    case RowKind::kF32:
      return run(PlainF32{});
    case RowKind::kF16:
      return run(Half{});
    case RowKind::kBF16:
      return run(Bfloat{});
    case RowKind::kQ8_0:
      return run(Q8_0{});
    case RowKind::kQ5_1:
      return run(Affine<5>{});
    case RowKind::kQ5_0:
      return run(Signed<5>{});
    case RowKind::kQ4_1:
      return run(Affine<4>{});
    case RowKind::kQ4_0:
      return run(Signed<4>{});
    case RowKind::kIq4Nl:
      return run(Iq4Nl{});
    case RowKind::kE4m3:
      return run(E4m3{});
    case RowKind::kInt8Row:
      return run(Int8Row{});
    case RowKind::kE4m3Row:
      return run(E4m3Row{});
    case RowKind::kInt4Row:
      return run(Int4Row{});
    case RowKind::kTurboKey4:
      return run(TurboKey<4>{});
    case RowKind::kTurboKey3:
      return run(TurboKey<3>{});
    case RowKind::kTurboValue4:
      return run(TurboValue<4>{});
    case RowKind::kTurboValue3:
      return run(TurboValue<3>{});
    case RowKind::kKivi4:
      return run(Stepped<4, 0>{});
    case RowKind::kKivi2:
      return run(Stepped<2, 0>{});
    case RowKind::kQuarot4:
      return run(Stepped<4, 1>{});
  }
}

/// x ← factor · √n · H x for each run of n values, H the orthonormal Sylvester–Walsh–Hadamard matrix.
KVS_CODEC void rotate_hadamard(float* x, std::size_t count, std::size_t n, float factor) noexcept {
  for (std::size_t half = n / 2; half > 0; half /= 2)
    for (std::size_t first = 0; first < count; first += 2 * half)
      for (std::size_t i = first; i < first + half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

/// The ±1 that int4_per_token_head multiplies the values of a run by: torch.bernoulli(0.5) of the seed 0x9E3779B9.
KVS_CODEC float sign_at(std::size_t index) noexcept {
  constexpr std::uint32_t kSigns[8] = {0x6573590dU, 0x808035b1U, 0xa6443d6cU, 0x6b7f5438U,
                                       0x4aa48b81U, 0xabafc441U, 0x320b9848U, 0xfa2043a0U};
  return (kSigns[index / 32 % 8] >> (index % 32)) & 1U ? 1.0F : -1.0F;
}

/// A row, or one of its two parts, as it is before it is coded: in other places, signed, rotated, scaled.
struct RowBasis {
  RowFormat format;
  std::size_t count;
  float scale;

  KVS_CODEC bool rotates() const noexcept { return format.hadamard > 0 && count % format.hadamard == 0; }
  KVS_CODEC std::size_t place(std::size_t i) const noexcept {
    return format.adjacent_pairs ? i / 2 + i % 2 * (count / 2) : i;
  }
  KVS_CODEC void enter(const float* x, float* y) const noexcept {
    for (std::size_t i = 0; i < count; ++i) y[i] = x[place(i)];
    if (format.signs)
      for (std::size_t i = 0; i < count; ++i) y[i] *= sign_at(i % format.hadamard);
    if (rotates())  // int4_per_token_head leaves √n in
      rotate_hadamard(y, count, format.hadamard, format.signs ? 1 : 1 / std::sqrt(static_cast<float>(format.hadamard)));
    if (format.kind == RowKind::kE4m3)
      for (std::size_t i = 0; i < count; ++i) y[i] /= scale;
  }
  /// y is overwritten, and may be x where nothing changes places.
  KVS_CODEC void leave(float* y, float* x) const noexcept {
    if (format.kind == RowKind::kE4m3)
      for (std::size_t i = 0; i < count; ++i) y[i] *= scale;
    const auto run = static_cast<float>(format.hadamard);
    if (rotates()) rotate_hadamard(y, count, format.hadamard, format.signs ? 1 / run : 1 / std::sqrt(run));
    if (format.signs)
      for (std::size_t i = 0; i < count; ++i) y[i] *= sign_at(i % format.hadamard);
    if (y != x)
      for (std::size_t i = 0; i < count; ++i) x[place(i)] = y[i];
  }
};

/// What is coded by itself: a row, or the rows of format.group tokens that are held together.
KVS_CODEC std::size_t rows_of_unit(const RowFormat& format) noexcept { return format.across_tokens ? format.group : 1; }
/// Floats of scratch memory that coding a unit takes.
KVS_CODEC std::size_t unit_scratch(const RowFormat& format, std::size_t values) noexcept {
  return format.across_tokens ? 2 * (format.group + values) : values + 64;
}

/// @param x  [rows_of_unit, values];  @param scale  what kE4m3 divides by
template <class Codec>
KVS_CODEC void encode_unit(const RowFormat& format, std::size_t values, float scale, const float* x, std::uint8_t* to,
                           float* scratch) noexcept {
  if constexpr (requires { Codec::encode_across(x, values, values, to, scratch); })
    if (format.across_tokens) return Codec::encode_across(x, format.group, values, to, scratch);
  const std::size_t counts[2] = {format.split, values - format.split};
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const RowGroup group = group_of(format, count);
    RowBasis{format, count, scale}.enter(x, scratch);
    for (std::size_t i = count; i % group.values != 0; ++i) scratch[i] = 0;
    for (std::size_t i = 0; i < count; i += group.values, to += group.bytes)
      Codec::encode(scratch + i, group.values, to);
    x += count;
  }
}

template <class Codec>
KVS_CODEC void decode_unit(const RowFormat& format, std::size_t values, float scale, const std::uint8_t* from, float* x,
                           float* scratch) noexcept {
  if constexpr (requires { Codec::decode_across(from, values, values, x, scratch); })
    if (format.across_tokens) return Codec::decode_across(from, format.group, values, x, scratch);
  const std::size_t counts[2] = {format.split, values - format.split};
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const RowGroup group = group_of(format, count);
    float* const y = format.adjacent_pairs || count % group.values != 0 ? scratch : x;
    for (std::size_t i = 0; i < count; i += group.values, from += group.bytes) Codec::decode(from, group.values, y + i);
    RowBasis{format, count, scale}.leave(y, x);
    x += count;
  }
}

}  // namespace
}  // namespace kvs::codecs
