// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

// One register of floats as the compiler's vector type: sixteen with AVX-512, eight with AVX2. The build compiles the
// files of this folder once per instruction set, named KVS_ISA. All other files are compiled for AVX2. Processors other
// than x86-64 have one set, `portable`: eight floats in as many registers as the processor needs.
#if !defined(KVS_ISA)
#if defined(__x86_64__)
#define KVS_ISA avx2
#else
#define KVS_ISA portable
#endif
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inline, so no vector crosses a call boundary
#endif

namespace kvs::cpu {
inline namespace KVS_ISA {

#if defined(__AVX512F__)
inline constexpr std::size_t kLanes = 16;
#else
inline constexpr std::size_t kLanes = 8;
#endif
using Lanes = float __attribute__((vector_size(4 * kLanes)));
using IntLanes = std::int32_t __attribute__((vector_size(4 * kLanes)));
using UintLanes = std::uint32_t __attribute__((vector_size(4 * kLanes)));  // unsigned wraps where a NaN's bits overflow
using Bf16Lanes = std::uint16_t __attribute__((vector_size(2 * kLanes)));
using ByteLanes = std::uint8_t __attribute__((vector_size(kLanes)));
using DoubleLanes = double __attribute__((vector_size(4 * kLanes)));  // half as many

inline Lanes splat(float value) noexcept { return value - Lanes{}; }

inline Lanes load(const float* from) noexcept {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
/// Loads the first `count` values. The other lanes are `fill`.
inline Lanes load_part(const float* from, std::size_t count, float fill = 0) noexcept {
  Lanes lanes = splat(fill);
  std::memcpy(&lanes, from, count * sizeof(float));
  return lanes;
}

inline void store(float* to, Lanes lanes) noexcept { std::memcpy(to, &lanes, sizeof(lanes)); }
inline void store_part(float* to, Lanes lanes, std::size_t count) noexcept {
  std::memcpy(to, &lanes, count * sizeof(float));
}

/// Converts bf16 to f32 exactly.
inline Lanes load(const std::uint16_t* from) noexcept {
  Bf16Lanes narrow;
  std::memcpy(&narrow, from, sizeof(narrow));
  return reinterpret_cast<Lanes>(__builtin_convertvector(narrow, UintLanes) << 16);
}

/// Equals f32_to_bf16 of core/dtype.h bit for bit.
inline Bf16Lanes to_bf16(Lanes lanes) noexcept {
  const auto bits = reinterpret_cast<UintLanes>(lanes);
  const UintLanes rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const UintLanes quiet_nan = (bits >> 16) | 0x40U;
  const UintLanes words = (bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded;
#if defined(__AVX512F__) || !defined(__x86_64__)
  return __builtin_convertvector(words, Bf16Lanes);
#else  // converts words to half-words with saturation, which these values do not reach
  const auto all = reinterpret_cast<__m256i>(words);
  return reinterpret_cast<Bf16Lanes>(_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#endif
}
/// Takes values of 0 to 255.
inline ByteLanes to_bytes(IntLanes values) noexcept {
#if defined(__AVX512F__) || !defined(__x86_64__)
  return __builtin_convertvector(values, ByteLanes);
#else
  const auto all = reinterpret_cast<__m256i>(values);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  const __m128i bytes = _mm_packus_epi16(words, words);
  ByteLanes low;
  std::memcpy(&low, &bytes, sizeof(low));
  return low;
#endif
}

inline void store(std::uint16_t* to, Lanes lanes) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, sizeof(narrow));
}
inline void store_part(std::uint16_t* to, Lanes lanes, std::size_t count) noexcept {
  const Bf16Lanes narrow = to_bf16(lanes);
  std::memcpy(to, &narrow, count * sizeof(std::uint16_t));
}

/// Like store(), but in one instruction if the processor has it. Subnormals may become zero.
inline void store_fast(std::uint16_t* to, Lanes lanes) noexcept {
#if defined(__AVX512BF16__)
  const __m256bh narrow = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(lanes));
  std::memcpy(to, &narrow, sizeof(narrow));
#else
  store(to, lanes);
#endif
}
inline void store_fast(float* to, Lanes lanes) noexcept { store(to, lanes); }

/// Return the larger or smaller of each pair. A NaN in `a` is skipped; a NaN in `b` is kept.
inline Lanes larger(Lanes a, Lanes b) noexcept { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) noexcept { return a < b ? a : b; }

/// Returns mantissa · 2^n for integers n in [−152, 130].
inline Lanes scale_by_power_of_two(Lanes mantissa, Lanes n) noexcept {
#if defined(__AVX512F__)
  // Uses the masked form with a full mask: the plain form triggers a warning inside the compiler's header.
  return reinterpret_cast<Lanes>(
      _mm512_maskz_scalef_ps(0xffff, reinterpret_cast<__m512>(mantissa), reinterpret_cast<__m512>(n)));
#else
  // Uses two factors, because n may exceed one exponent's range. Adding 1.5 · 2^23 leaves n in the low mantissa bits.
  const auto exponent = reinterpret_cast<IntLanes>(reinterpret_cast<UintLanes>(n + 0x1.8p23F) - 0x4b400000U);
  const IntLanes half = exponent >> 1;
  const auto factor = [](IntLanes e) { return reinterpret_cast<Lanes>((e + 127) << 23); };
  return mantissa * factor(half) * factor(exponent - half);
#endif
}

/// Returns a · b + c, rounded once, at every optimisation level.
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) noexcept {
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif !defined(__x86_64__)
  for (std::size_t i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#else
  return reinterpret_cast<Lanes>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#endif
}

inline float largest(Lanes lanes) noexcept {
  float best = lanes[0];
  for (std::size_t i = 1; i < kLanes; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

/// Sums pairwise, in double precision.
inline double sum_of(Lanes lanes) noexcept {
  using HalfLanes = float __attribute__((vector_size(2 * kLanes)));
  HalfLanes halves[2];
  std::memcpy(halves, &lanes, sizeof(lanes));
  const DoubleLanes sums =
      __builtin_convertvector(halves[0], DoubleLanes) + __builtin_convertvector(halves[1], DoubleLanes);
  double pairs[kLanes / 2];
  std::memcpy(pairs, &sums, sizeof(sums));
  double total = 0;
  for (std::size_t i = 0; i < kLanes / 2; i += 4) total += (pairs[i] + pairs[i + 1]) + (pairs[i + 2] + pairs[i + 3]);
  return total;
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
