// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/lanes.h"

namespace kvs::cpu {
inline namespace KVS_ISA {

inline constexpr float kRoundToInteger = 0x1.8p23F;  // adding and then subtracting it removes the fraction bits

/// e^x within 2 units in the last place, including subnormal results. Returns 0 for −∞, ∞ above 88.73, NaN for NaN.
/// Uses Cody and Waite's reduction x = n·ln 2 + r, |r| ≤ ln 2 / 2, then a polynomial for e^r. Its relative error is at
/// most 3.1e-9, a twentieth of a rounding (minimax fit of 1 + r + r²q(r), q of degree 4).
inline Lanes exp(Lanes x) noexcept {
  x = smaller(splat(89.0F), larger(splat(-104.0F), x));  // a NaN passes through
  const Lanes n = (x * 0x1.715476p0F + kRoundToInteger) - kRoundToInteger;
  const Lanes r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // the first product is exact: 15 bits by 8 bits
  Lanes power = r * 0x1.6a23d0p-10F + 0x1.123a20p-7F;
  power = power * r + 0x1.5558f2p-5F;
  power = power * r + 0x1.555492p-3F;
  power = power * r + 0x1.fffffcp-2F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  return scale_by_power_of_two(power, n);
}

/// 2^r for |r| ≤ 1/2.
inline Lanes exp2_of_fraction(Lanes r) noexcept {
  Lanes power = r * 0x1.41fb82p-13F + 0x1.5f3eacp-10F;
  power = power * r + 0x1.3b2d4ep-7F;
  power = power * r + 0x1.c6aee8p-5F;
  power = power * r + 0x1.ebfbdcp-3F;
  power = power * r + 0x1.62e430p-1F;
  return power * r + 1.0F;
}

/// 2^x within 2 units in the last place, with the special values of exp(). Cheaper than exp(), because x − n is exact.
inline Lanes exp2(Lanes x) noexcept {
  x = smaller(splat(129.0F), larger(splat(-151.0F), x));
  const Lanes n = (x + kRoundToInteger) - kRoundToInteger;
  return scale_by_power_of_two(exp2_of_fraction(x - n), n);
}

/// exp2() for x ≤ 0, the weights of a softmax: 0 below 2^-126.5.
inline Lanes exp2_of_nonpositive(Lanes x) noexcept {
#if defined(__AVX512F__)
  return exp2(x);
#else
  x = larger(splat(-127.0F), x);
  const Lanes shifted = x + kRoundToInteger, r = x - (shifted - kRoundToInteger);
  // n is in the low bits of `shifted`; its higher bits are shifted out. The exponent of 2^-127 is that of 0.
  const auto factor = reinterpret_cast<Lanes>((reinterpret_cast<UintLanes>(shifted) + 127U) << 23);
  return exp2_of_fraction(r) * factor;
#endif
}

/// tanh x within 3 units in the last place; ±1 for ±∞, NaN for NaN. Near 0 it is x + x³q(x²) with a relative error
/// below 2^-24 (q of degree 4, fitted at Chebyshev nodes), elsewhere 1 − 2 / (e^{2x} + 1).
inline Lanes tanh(Lanes x) noexcept {
  const Lanes size = larger(-x, x), square = x * x;
  Lanes q = square * -0x1.901808p-8F + 0x1.581fa8p-6F;
  q = q * square - 0x1.b928e0p-5F;
  q = q * square + 0x1.110e2ep-3F;
  q = q * square - 0x1.555552p-2F;
  const Lanes near = x + x * square * q, far = 1.0F - 2.0F / (exp(size + size) + 1.0F);
  return size < 0.625F ? near : (x < 0.0F ? -far : far);
}

/// 1 − erf x within 2^-21, and within a relative error of 2^-15 wherever the result is a normal number; NaN for NaN.
/// For x ≥ 0 it is t·exp(−x² + p(t)) with t = 1 / (1 + x/2) (the form of Press et al., Numerical Recipes, section 6.2).
/// p has degree 9 and is fitted at Chebyshev nodes for t in [0.14, 1], error 6e-8. erfc(−x) = 2 − erfc(x).
inline Lanes erfc(Lanes x) noexcept {
  const Lanes size = larger(-x, x), t = 1.0F / (1.0F + 0.5F * size);
  Lanes p = t * 0x1.45d7dcp-3F - 0x1.83cc26p-1F;
  p = p * t + 0x1.55d87ap+0F;
  p = p * t - 0x1.dce29ep-1F;
  p = p * t + 0x1.c9b8bcp-4F;
  p = p * t - 0x1.965b4cp-4F;
  p = p * t + 0x1.172cbep-4F;
  p = p * t + 0x1.84e298p-2F;
  p = p * t + 0x1.ffb2f6p-1F;
  p = p * t - 0x1.43f6d8p+0F;
  const Lanes above = t * exp(p - size * size);
  return x < 0.0F ? 2.0F - above : above;
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
