#pragma once

#include "kernels/cpu/lanes.h"

namespace kvs::cpu {

inline constexpr float kRoundToInteger = 0x1.8p23F;  // adding and subtracting it leaves no fraction bits

/// e^x within 2 units in the last place (subnormal results included), 0 for −∞, ∞ above 88.73, NaN for NaN.
/// Cody and Waite's reduction x = n·ln 2 + r, |r| ≤ ln 2 / 2, then a polynomial for e^r whose relative error there is
/// at most 3.1e-9, a twentieth of a rounding (least maximum for 1 + r + r²q(r), q of degree 4).
inline Lanes exp(Lanes x) noexcept {
  x = smaller(splat(89.0F), larger(splat(-104.0F), x));  // a NaN passes through
  const Lanes n = (x * 0x1.715476p0F + kRoundToInteger) - kRoundToInteger;
  const Lanes r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // the first product is exact: 15 bits by 8
  Lanes power = r * 0x1.6a23d0p-10F + 0x1.123a20p-7F;
  power = power * r + 0x1.5558f2p-5F;
  power = power * r + 0x1.555492p-3F;
  power = power * r + 0x1.fffffcp-2F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  return scale_by_power_of_two(power, n);
}

/// 2^x within 2 units in the last place, with the same special values; cheaper than exp, since x − n is exact.
inline Lanes exp2(Lanes x) noexcept {
  x = smaller(splat(129.0F), larger(splat(-151.0F), x));
  const Lanes n = (x + kRoundToInteger) - kRoundToInteger, r = x - n;
  Lanes power = r * 0x1.41fb82p-13F + 0x1.5f3eacp-10F;
  power = power * r + 0x1.3b2d4ep-7F;
  power = power * r + 0x1.c6aee8p-5F;
  power = power * r + 0x1.ebfbdcp-3F;
  power = power * r + 0x1.62e430p-1F;
  power = power * r + 1.0F;
  return scale_by_power_of_two(power, n);
}

}  // namespace kvs::cpu
