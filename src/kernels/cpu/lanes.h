#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

// Sixteen floats at a time in the compiler's own vector type: one AVX-512 register, two of AVX2, four of SSE.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inline, no vector crosses a call boundary
#endif

namespace kvs::cpu {

inline constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using IntLanes = std::int32_t __attribute__((vector_size(64)));
using Bf16Lanes = std::uint16_t __attribute__((vector_size(32)));

inline Lanes splat(float value) noexcept { return value - Lanes{}; }

inline Lanes load(const float* from) noexcept {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
/// The first `count` values; the other lanes are `fill`.
inline Lanes load_part(const float* from, std::size_t count, float fill = 0) noexcept {
  Lanes lanes = splat(fill);
  std::memcpy(&lanes, from, count * sizeof(float));
  return lanes;
}

inline void store(float* to, Lanes lanes) noexcept { std::memcpy(to, &lanes, sizeof(lanes)); }
inline void store_part(float* to, Lanes lanes, std::size_t count) noexcept {
  std::memcpy(to, &lanes, count * sizeof(float));
}

/// Bit for bit f32_to_bf16 of core/dtype.h.
inline Bf16Lanes to_bf16(Lanes lanes) noexcept {
  const auto bits = reinterpret_cast<IntLanes>(lanes);
  const IntLanes rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const IntLanes quiet_nan = (bits >> 16) | 0x40;
  return __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded, Bf16Lanes);
}
inline void store(std::uint16_t* to, Lanes lanes) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, sizeof(narrow));
}
inline void store_part(std::uint16_t* to, Lanes lanes, std::size_t count) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, count * sizeof(std::uint16_t));
}

/// The larger of each pair. A NaN in `a` is skipped, one in `b` kept.
inline Lanes larger(Lanes a, Lanes b) noexcept { return a > b ? a : b; }

inline float largest(Lanes lanes) noexcept {
  float best = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) best = lanes[lane] > best ? lanes[lane] : best;
  return best;
}
inline double sum_of(Lanes lanes) noexcept {
  double sum = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(lanes[lane]);
  return sum;
}

}  // namespace kvs::cpu
