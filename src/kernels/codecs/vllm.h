// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

/// vLLM's fp8 and fp8_e5m2, for values already divided by their scale.
template <class Format>
struct Fp8Values {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = Format::bits(x[i]);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    for (std::size_t i = 0; i < count; ++i) x[i] = Format::value(from[i]);
  }
};
using E4m3 = Fp8Values<Fp8E4m3>;
using E5m2 = Fp8Values<Fp8E5m2>;

/// NVFP4, for values already divided by the scale of their layer: 16 codes in e2m1, then the block's scale in e4m3. A
/// block whose scale rounds to 0 is 0.
struct NvFp4 {
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    to[count / 2] = Fp8E4m3::bits(largest_magnitude(x, count) / 6);
    const float scale = Fp8E4m3::value(to[count / 2]);
    put_codes<4>(to, count, [&](std::size_t i) { return scale == 0 ? 0U : e2m1_bits(x[i] / scale); });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const float scale = Fp8E4m3::value(from[count / 2]);
    each_code<4>(from, count, [&](std::size_t i, unsigned code) { x[i] = e2m1_value(code) * scale; });
  }
};

/// vLLM, triton_reshape_and_cache_flash.py: one f32 scale per token and head, stored after the codes.
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
    for (std::size_t i = 0; i < count; ++i) to[i] = Fp8E4m3::bits(x[i] * inverse);
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    const auto scale = loaded<float>(from + count);
    for (std::size_t i = 0; i < count; ++i) x[i] = Fp8E4m3::value(from[i]) * scale;
  }
};

/// vLLM, int4_per_token_head.py. The rotation left the factor √b in the values. The low four bits of the f32 scale hold
/// an integer zero point.
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

/// vLLM, turboquant. Keys: the direction in the Lloyd–Max cells of N(0, 1/d) and the norm in f16 ("nc": the vector of
/// centroids is divided by its norm). Values: minimum and step in f16; codes are computed with the f32 values.
template <unsigned Bits>
struct TurboKey {
  /// Returns a centroid of N(0, 1); centroids ascend.
  KVS_CODEC static float centroid(unsigned code) noexcept {
    constexpr float kFour[16] = {-2.73092224F, -2.06844712F, -1.61788180F, -1.25625754F, -0.94244822F, -0.65687991F,
                                 -0.38813779F, -0.12842766F, 0.12842766F,  0.38813779F,  0.65687991F,  0.94244822F,
                                 1.25625754F,  1.61788180F,  2.06844712F,  2.73092224F};
    constexpr float kThree[8] = {-2.15034958F, -1.34318004F, -0.75564553F, -0.24498360F,
                                 0.24498360F,  0.75564553F,  1.34318004F,  2.15034958F};
    return Bits == 4 ? kFour[code & 15U] : kThree[code & 7U];
  }
  /// √(Σ x²) of a multiple of 16 values, in sixteen partial sums: equal for every register width.
  KVS_CODEC static float length(const float* x, std::size_t count) noexcept {
    float sums[16] = {};
    for (std::size_t first = 0; first < count; first += 16)
      for (std::size_t i = 0; i < 16; ++i) sums[i] += x[first + i] * x[first + i];
    for (std::size_t half = 8; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    return std::sqrt(sums[0]);
  }
  KVS_CODEC static unsigned cell(float x) noexcept {
    unsigned code = 0;
    for (unsigned n = 1; n < 1U << Bits; ++n) code += x >= (centroid(n - 1) + centroid(n)) / 2 ? 1U : 0U;
    return code;
  }
  KVS_CODEC static void encode(const float* x, std::size_t count, std::uint8_t* to) noexcept {
    const float norm = length(x, count), factor = std::sqrt(static_cast<float>(count)) / (norm + 1e-8F);
    put_half(to, norm);
    put_codes<Bits>(to + 2, count, [&](std::size_t i) { return cell(x[i] * factor); });
  }
  KVS_CODEC static void decode(const std::uint8_t* from, std::size_t count, float* x) noexcept {
    each_code<Bits>(from + 2, count, [&](std::size_t i, unsigned code) { x[i] = centroid(code); });
    const float factor = half_at(from) / length(x, count);
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

}  // namespace
}  // namespace kvs::codecs
