// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/codecs/scalars.h"

namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

/// Trellis-coded values with unequal rates. Value i adds bits[i] bits to a stream. The state is the last eight bits of
/// the stream; it selects one of the 256 values in the book for that number of bits. Earlier bits thus refine the
/// choice. An encoder finds the best path by dynamic programming over states. A decoder need not follow the path, so
/// any value can be read by itself. A row is its gain (f16), whose high byte is the first state, and the stream.
/// Source: Marcellin & Fischer (1990), IEEE Transactions on Communications 38(1), 82-93. The state as a window of the
/// stream is from QTIP, Tseng et al. (2024), arXiv:2406.11235, section 3.1. Our additions: rates per value, books
/// fitted to the coded values.
struct Trellis {
  static constexpr std::size_t kStates = 256, kGain = 2, kBack = kStates / 2;
  static constexpr float kMinGain = 0.05F, kMaxGain = 60000, kFar = 1e30F;

  static KVS_CODEC const TrellisValue* values_of(const RowTables& tables) noexcept {
    return reinterpret_cast<const TrellisValue*>(tables.values);
  }
  static KVS_CODEC unsigned bits_of_value(const TrellisValue& value) noexcept {
    return static_cast<unsigned>(value.bits);
  }

  /// Returns the state whose last bit is `shift` bits before the end of `byte`.
  static KVS_CODEC unsigned state_at(const std::uint8_t* byte, unsigned shift) noexcept {
    return ((static_cast<unsigned>(byte[-1]) << 8 | byte[0]) >> shift) & (kStates - 1);
  }

  /// Returns the root mean square of the coded values.
  KVS_CODEC static float gain_of(const TrellisValue* values, std::size_t count, const float* x) noexcept {
    float sum = 0, coded = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float z = (x[i] - values[i].offset) / values[i].scale;
      const bool codes = values[i].bits > 0;
      sum += codes ? z * z : 0;
      coded += codes ? 1 : 0;
    }
    return coded > 0 ? clamped(std::sqrt(sum / coded), kMinGain, kMaxGain) : 1;
  }

  static KVS_CODEC float normalised(const TrellisValue& value, float x, float inverse_gain) noexcept {
    return (x - value.offset) / value.scale * inverse_gain;
  }

  /// Writes a row's gain and sets the costs of the states before its values. @return 1 / gain
  static KVS_CODEC float begin_row(const RowTables& tables, std::size_t count, const float* x, std::uint8_t* to,
                                   float* cost) noexcept {
    put_half(to, gain_of(values_of(tables), count, x));
    for (std::size_t s = 0; s < kStates; ++s) cost[s] = s == to[1] ? 0 : kFar;
    return 1 / half_at(to);
  }

  /// Computes the cost of each state after a value: the value's error plus the smallest cost of a preceding state.
  /// @param cost  [state], overwritten;  @param least  [state >> bits], scratch
  /// @param back  [state >> bits]: the cheapest preceding state; the lowest of equally cheap ones
  static KVS_CODEC void advance(unsigned bits, float z, float weight, const float* book, float* cost, float* least,
                                std::uint8_t* back) noexcept {
    const std::size_t windows = kStates >> bits;  // bits shared by the states before and after the value
    for (std::size_t p = 0; p < windows; ++p) {
      std::size_t best = p;
      for (std::size_t s = p + windows; s < kStates; s += windows) best = cost[s] < cost[best] ? s : best;
      back[p] = static_cast<std::uint8_t>(best);
      least[p] = cost[best];
    }
    for (std::size_t s = 0; s < kStates; ++s) {
      const float error = z - book[s];
      cost[s] = weight * (error * error) + least[s >> bits];
    }
  }

  /// Writes the stream of the path that ends in the cheapest state.
  /// @param back  [value, kBack], of advance()
  static KVS_CODEC void write_path(const RowTables& tables, std::size_t count, const float* cost,
                                   const std::uint8_t* back, std::uint8_t* to, std::size_t bytes) noexcept {
    const TrellisValue* const values = values_of(tables);
    unsigned state = 0;
    for (unsigned s = 1; s < kStates; ++s) state = cost[s] < cost[state] ? s : state;
    std::memset(to + kGain, 0, bytes - kGain);
    std::size_t end = 8 * kGain;  // of the row's bits
    for (std::size_t i = 0; i < count; ++i) end += bits_of_value(values[i]);
    for (std::size_t i = count; i-- > 0;) {
      const unsigned bits = bits_of_value(values[i]);
      if (bits == 0) continue;
      std::uint8_t* const byte = to + (end - 1) / 8;
      const unsigned both = (state & ((1U << bits) - 1)) << (7 - (end - 1) % 8);  // of this byte and the one before
      byte[0] = static_cast<std::uint8_t>(byte[0] | both);
      if (both > 255) byte[-1] = static_cast<std::uint8_t>(byte[-1] | both >> 8);
      end -= bits;
      state = back[i * kBack + (state >> bits)];
    }
  }

  /// @param scratch  unit_scratch() floats
  KVS_CODEC static void encode_row(const RowTables& tables, std::size_t count, const float* x, std::uint8_t* to,
                                   std::size_t bytes, float* scratch) noexcept {
    const TrellisValue* const values = values_of(tables);
    float *const cost = scratch, *const least = scratch + kStates;
    auto* const back = reinterpret_cast<std::uint8_t*>(scratch + 2 * kStates);
    const float inverse = begin_row(tables, count, x, to, cost);
    for (std::size_t i = 0; i < count; ++i)
      if (const unsigned bits = bits_of_value(values[i]); bits > 0)
        advance(bits, normalised(values[i], x[i], inverse), values[i].weight, tables.books + bits * kStates, cost,
                least, back + i * kBack);
    write_path(tables, count, cost, back, to, bytes);
  }

  KVS_CODEC static void decode_row(const RowTables& tables, std::size_t count, const std::uint8_t* from,
                                   float* x) noexcept {
    const TrellisValue* const values = values_of(tables);
    const float gain = half_at(from);
    std::size_t last = 15;  // index in the row of the state's last bit
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned bits = bits_of_value(values[i]);
      last += bits;
      const unsigned state = state_at(from + last / 8, static_cast<unsigned>(7 - last % 8));
      x[i] = values[i].offset + gain * values[i].scale * tables.books[bits * kStates + state];
    }
  }
};

}  // namespace
}  // namespace kvs::codecs
