// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

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
    each_code<Bits>(from + 4, count,
                    [&](std::size_t i, unsigned code) { x[i] = static_cast<float>(code) * step + low; });
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

}  // namespace
}  // namespace kvs::codecs
