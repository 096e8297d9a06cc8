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
  static constexpr std::size_t kStates = 256, kGain = 2, kLanes = 16;
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

  /// Keeps the better of each state p and state p + half: the cheaper, or the lower if equal. This and the following
  /// loops vectorise: they have no aliasing and no branches.
  KVS_CODEC static void keep_better(std::size_t half, float* __restrict__ cost, float* __restrict__ state,
                                    const float* __restrict__ other_cost,
                                    const float* __restrict__ other_state) noexcept {
    for (std::size_t p = 0; p < half; ++p) {
      const float mine = cost[p], other = other_cost[p], low = state[p], high = other_state[p];
      const bool better = (other < mine) | ((other == mine) & (high < low));
      cost[p] = better ? other : mine;
      state[p] = better ? high : low;
    }
  }

  /// Computes the cost of each state after a value: the value's error plus the smallest cost of a preceding state.
  /// @tparam kSame  `1 << kSame` adjacent states (kLanes at most) have the same preceding states
  /// @param least  [state >> bits]
  template <unsigned kSame>
  KVS_CODEC static void add_errors(unsigned bits, float z, float weight, const float* __restrict__ book,
                                   const float* __restrict__ least, float* __restrict__ cost) noexcept {
    for (std::size_t first = 0; first < kStates; first += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float error = z - book[first + lane];
        cost[first + lane] = weight * (error * error) + least[(first >> bits) + (lane >> kSame)];
      }
  }

  /// Processes one value.
  /// @param cost  [state], overwritten;  @param scratch  [state]
  /// @param back  [state >> bits]: the cheapest preceding state
  KVS_CODEC static void advance(unsigned bits, float z, float weight, const float* book, float* cost, float* scratch,
                                std::uint8_t* back) noexcept {
    const std::size_t windows = kStates >> bits;  // bits shared by the states before and after the value
    float* const state = scratch;
    for (int s = 0; s < static_cast<int>(kStates); ++s) state[s] = static_cast<float>(s);
    const auto halve = [&](std::size_t half) {
      if (half >= windows) keep_better(half, cost, state, cost + half, state + half);
    };
    halve(128);  // constants, so that loops need no remainders
    halve(64);
    halve(32);
    halve(16);
    halve(8);
    halve(4);
    halve(2);
    halve(1);
    for (std::size_t p = 0; p < windows; ++p) back[p] = static_cast<std::uint8_t>(static_cast<int>(state[p]));
    float* const least = scratch;
    std::memcpy(least, cost, kStates / 2 * sizeof(float));
    switch (bits) {
      case 1:
        return add_errors<1>(bits, z, weight, book, least, cost);
      case 2:
        return add_errors<2>(bits, z, weight, book, least, cost);
      case 3:
        return add_errors<3>(bits, z, weight, book, least, cost);
      default:
        return add_errors<4>(bits, z, weight, book, least, cost);
    }
  }

  /// @param scratch  unit_scratch() floats
  KVS_CODEC static void encode_row(const RowTables& tables, std::size_t count, const float* x, std::uint8_t* to,
                                   std::size_t bytes, float* scratch) noexcept {
    const TrellisValue* const values = values_of(tables);
    put_half(to, gain_of(values, count, x));
    const float inverse = 1 / half_at(to);
    float* const cost = scratch;
    auto* const back = reinterpret_cast<std::uint8_t*>(scratch + 2 * kStates);  // [value, kStates / 2]
    for (std::size_t s = 0; s < kStates; ++s) cost[s] = s == to[1] ? 0 : kFar;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned bits = bits_of_value(values[i]);
      if (bits == 0) continue;
      const float z = (x[i] - values[i].offset) / values[i].scale * inverse;
      advance(bits, z, values[i].weight, tables.books + bits * kStates, cost, scratch + kStates,
              back + i * (kStates / 2));
    }
    std::size_t state = 0;
    for (std::size_t s = 1; s < kStates; ++s) state = cost[s] < cost[state] ? s : state;
    std::memset(to + kGain, 0, bytes - kGain);
    std::size_t end = 0;
    for (std::size_t i = 0; i < count; ++i) end += bits_of_value(values[i]);
    for (std::size_t i = count; i-- > 0;) {
      const unsigned bits = bits_of_value(values[i]);
      if (bits == 0) continue;
      for (unsigned n = 0; n < bits; ++n) {
        const std::size_t at = end - 1 - n;
        to[kGain + at / 8] = static_cast<std::uint8_t>(to[kGain + at / 8] | ((state >> n) & 1U) << (7 - at % 8));
      }
      end -= bits;
      state = back[i * (kStates / 2) + (state >> bits)];
    }
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
