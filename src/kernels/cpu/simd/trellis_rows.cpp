// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/trellis_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/codecs/trellis.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

using codecs::Trellis;

constexpr std::size_t kStates = Trellis::kStates;

/// The cheapest of some states in each lane: the lowest of equally cheap ones if these come in ascending order.
struct Cheapest {
  explicit Cheapest(const float* costs) : cost(load(costs)) {}

  void compare(Lanes other, IntLanes its_offset) noexcept {
    const IntLanes better = other < cost;
    cost = better ? other : cost;
    offset = better ? its_offset : offset;
  }

  Lanes cost;
  IntLanes offset{};  // of the state from that of the first costs in the same lane
};

IntLanes splat(std::size_t value) noexcept { return static_cast<std::int32_t>(value) - IntLanes{}; }

template <int... kLane>
IntLanes numbered(std::integer_sequence<int, kLane...> /*lanes*/) noexcept {
  return IntLanes{kLane...};
}
/// Returns the number of each lane.
IntLanes lane_numbers() noexcept { return numbered(std::make_integer_sequence<int, kLanes>()); }

/// Finds the cheapest state before each window, the bits that the states before and after a value share.
/// @param least  [window], its cost;  @param back  [window], the state
template <unsigned kBits>
void choose(const float* cost, float* least, std::uint8_t* back) noexcept {
  constexpr std::size_t kWindows = kStates >> kBits, kHalf = kStates / 2;
  if constexpr (kWindows >= kLanes) {
    for (std::size_t first = 0; first < kWindows; first += kLanes) {
      Cheapest low(cost + first), high(cost + kHalf + first);  // two chains of comparisons at once
      for (std::size_t at = kWindows; at < kHalf; at += kWindows) {
        low.compare(load(cost + first + at), splat(at));
        high.compare(load(cost + kHalf + first + at), splat(at));
      }
      low.compare(high.cost, high.offset + splat(kHalf));
      store(least + first, low.cost);
      const ByteLanes states = to_bytes(low.offset + splat(first) + lane_numbers());
      std::memcpy(back + first, &states, sizeof(states));
    }
  } else {  // several states of a window are in one vector
    Cheapest low(cost), high(cost + kHalf);
    for (std::size_t at = kLanes; at < kHalf; at += kLanes) {
      low.compare(load(cost + at), splat(at));
      high.compare(load(cost + kHalf + at), splat(at));
    }
    low.compare(high.cost, high.offset + splat(kHalf));
    for (std::size_t n = 0; n < kLanes; ++n) {
      const auto state = static_cast<std::uint8_t>(static_cast<std::size_t>(low.offset[n]) + n);
      const std::size_t window = n % kWindows;
      const float found = low.cost[n];
      if (n >= kWindows && !(found < least[window] || (found == least[window] && state < back[window]))) continue;
      least[window] = found;
      back[window] = state;
    }
  }
}

template <unsigned kShift, std::size_t... kLane>
Lanes repeated(Lanes values, std::index_sequence<kLane...> /*lanes*/) noexcept {
  return __builtin_shufflevector(values, values, static_cast<int>(kLane >> kShift)...);
}

/// Computes the cost of each state after a value: the value's error plus the smallest cost of a preceding state.
template <unsigned kBits>
void add_errors(float z, float weight, const float* book, const float* least, float* cost) noexcept {
#pragma GCC unroll 4
  for (std::size_t first = 0; first < kStates; first += kLanes) {
    const Lanes error = z - load(book + first);
    const Lanes before = repeated<kBits>(load(least + (first >> kBits)), std::make_index_sequence<kLanes>());
    store(cost + first, weight * (error * error) + before);
  }
}

template <unsigned kBits>
void advance(float z, float weight, const float* book, float* cost, float* least, std::uint8_t* back) noexcept {
  choose<kBits>(cost, least, back);
  add_errors<kBits>(z, weight, book, least, cost);
}

constexpr decltype(&advance<1>) kAdvance[] = {nullptr,    advance<1>, advance<2>, advance<3>, advance<4>,
                                              advance<5>, advance<6>, advance<7>, advance<8>};

void encode_row(const CodedRows& coded, const float* x, std::uint8_t* to, std::size_t bytes) noexcept {
  const TrellisValue* const values = Trellis::values_of(coded.tables);
  float cost[kStates], least[kStates / 2 + kLanes] = {};  // add_errors() loads whole vectors
  const float inverse = Trellis::begin_row(coded.tables, coded.values, x, to, cost);
  auto* const back = reinterpret_cast<std::uint8_t*>(coded.scratch);
  for (std::size_t i = 0; i < coded.values; ++i) {
    const unsigned bits = Trellis::bits_of_value(values[i]);
    if (bits == 0) continue;
    kAdvance[bits](Trellis::normalised(values[i], x[i], inverse), values[i].weight, coded.tables.books + bits * kStates,
                   cost, least, back + i * Trellis::kBack);
  }
  Trellis::write_path(coded.tables, coded.values, cost, back, to, bytes);
}

}  // namespace

void encode_trellis(const CodedRows& coded, std::size_t bytes) noexcept {
  for (std::size_t row = 0; row < coded.rows; ++row)
    encode_row(coded, coded.x + row * coded.values, coded.bytes + row * bytes, bytes);
}

/// Finds only once where each value's state ends.
void decode_trellis(const CodedRows& coded, std::size_t bytes) noexcept {
  struct Place {
    std::uint32_t byte, shift, book;
    float scale, offset;
  };
  constexpr std::size_t kMaxPlaces = 512;
  const TrellisValue* const values = Trellis::values_of(coded.tables);
  for (std::size_t first = 0, last = 15; first < coded.values; first += kMaxPlaces) {
    Place places[kMaxPlaces];
    const std::size_t count = std::min(kMaxPlaces, coded.values - first);
    for (std::size_t n = 0; n < count; ++n) {
      const TrellisValue& value = values[first + n];
      const unsigned bits = Trellis::bits_of_value(value);
      last += bits;
      places[n] = {static_cast<std::uint32_t>(last / 8), static_cast<std::uint32_t>(7 - last % 8),
                   static_cast<std::uint32_t>(bits * kStates), value.scale, value.offset};
    }
    for (std::size_t row = 0; row < coded.rows; ++row) {
      const std::uint8_t* const from = coded.bytes + row * bytes;
      float* const x = coded.x + row * coded.values + first;
      const float gain = codecs::half_at(from);
      for (std::size_t n = 0; n < count; ++n) {
        const Place& place = places[n];
        const unsigned state = Trellis::state_at(from + place.byte, place.shift);
        x[n] = place.offset + gain * place.scale * coded.tables.books[place.book + state];
      }
    }
  }
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
