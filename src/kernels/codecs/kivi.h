// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

/// x[i] = ((codes[i] >> shift) & mask) · step[i] + low[i]
KVS_CODEC void take_byte_codes(const std::uint8_t* codes, unsigned shift, unsigned mask, std::size_t count,
                               const float* low, const float* step, float* x) noexcept {
  std::size_t i = 0;
#ifndef __CUDACC__
  const auto floats = [](const float* from) { return loaded<WideFloats>(reinterpret_cast<const std::uint8_t*>(from)); };
  for (; i + kWide <= count; i += kWide) {
    const WideFloats code = wide_at<WideBytes>(
        codes + i, [&](WideInts byte) { return (byte >> static_cast<int>(shift)) & static_cast<int>(mask); });
    put(reinterpret_cast<std::uint8_t*>(x + i), code * floats(step + i) + floats(low + i));
  }
#endif
  for (; i < count; ++i) x[i] = static_cast<float>((codes[i] >> shift) & mask) * step[i] + low[i];
}

/// KIVI (new_pack.py) and QuaRot (kv_cache.py): the minimum and the step are rounded to f16; the codes follow from the
/// rounded values. Across tokens, the minima, the steps and each byte of the codes are contiguous over the channels.
/// @tparam Floor  smallest range, in units of 1e-5
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
    take_codes<Bits>(from + 4, count, x, [&](auto code) { return code * step + low; });
  }

  /// @param x  [token, channel], all tokens of a group
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
    take_halves(from, channels, low);
    take_halves(from + 2 * channels, channels, step);
    constexpr unsigned kParts = 8 / Bits;
    const std::size_t bytes = tokens / kParts;
    for (std::size_t i = 0; i < bytes; ++i)
      for (unsigned part = 0; part < kParts; ++part)
        take_byte_codes(from + (4 + i) * channels, Bits * part, (1U << Bits) - 1, channels, low, step,
                        x + (part * bytes + i) * channels);
  }
};

}  // namespace
}  // namespace kvs::codecs
