#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

#if defined(__AVX512F__)
#include <immintrin.h>  // for two single instructions that the vector type cannot express
#endif

// Sixteen floats at a time in the compiler's own vector type: one AVX-512 register, two of AVX2, four of SSE.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inline, no vector crosses a call boundary
#endif

namespace kvs::cpu {

inline constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using IntLanes = std::int32_t __attribute__((vector_size(64)));
using UintLanes = std::uint32_t __attribute__((vector_size(64)));  // wraps around, which NaN's bits would else forbid
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
  const auto bits = reinterpret_cast<UintLanes>(lanes);
  const UintLanes rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const UintLanes quiet_nan = (bits >> 16) | 0x40U;
  return __builtin_convertvector((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded, Bf16Lanes);
}
inline void store(std::uint16_t* to, Lanes lanes) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, sizeof(narrow));
}
inline void store_part(std::uint16_t* to, Lanes lanes, std::size_t count) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, count * sizeof(std::uint16_t));
}

/// As above, but in one instruction where the processor has it; subnormals may become zero.
inline void store_fast(std::uint16_t* to, Lanes lanes) noexcept {
#if defined(__AVX512BF16__)
  const __m256bh narrow = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(lanes));
  std::memcpy(to, &narrow, sizeof(narrow));
#else
  store(to, lanes);
#endif
}
inline void store_fast(float* to, Lanes lanes) noexcept { store(to, lanes); }

/// The larger or smaller of each pair. A NaN in `a` is skipped, one in `b` kept.
inline Lanes larger(Lanes a, Lanes b) noexcept { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) noexcept { return a < b ? a : b; }

/// mantissa · 2^n for whole numbers n in [−152, 130].
inline Lanes scale_by_power_of_two(Lanes mantissa, Lanes n) noexcept {
#if defined(__AVX512F__)
  // The masked form with a full mask: the plain one trips a warning inside the compiler's own header.
  return reinterpret_cast<Lanes>(
      _mm512_maskz_scalef_ps(0xffff, reinterpret_cast<__m512>(mantissa), reinterpret_cast<__m512>(n)));
#else
  // Two factors, since n may lie outside the range of one exponent. Adding 1.5 · 2^23 leaves n in the low mantissa
  // bits.
  const auto exponent = reinterpret_cast<IntLanes>(reinterpret_cast<UintLanes>(n + 0x1.8p23F) - 0x4b400000U);
  const IntLanes half = exponent >> 1;
  const auto factor = [](IntLanes e) { return reinterpret_cast<Lanes>((e + 127) << 23); };
  return mantissa * factor(half) * factor(exponent - half);
#endif
}

inline float largest(Lanes lanes) noexcept {
  lanes = larger(lanes, __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  lanes = larger(lanes, __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  lanes = larger(lanes, __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return lanes[0] > lanes[1] ? lanes[0] : lanes[1];
}

/// Pairwise, in double precision.
inline double sum_of(Lanes lanes) noexcept {
  using Doubles = double __attribute__((vector_size(64)));
  const Doubles sums =
      __builtin_convertvector(__builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7), Doubles) +
      __builtin_convertvector(__builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15), Doubles);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace kvs::cpu
