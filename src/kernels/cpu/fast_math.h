#pragma once

#include "kernels/cpu/lanes.h"

namespace kvs::cpu {

/// e^x within 2 units in the last place (subnormal results included), 0 for −∞, ∞ above 88.73, NaN for NaN.
/// Cody and Waite's reduction x = n·ln 2 + r, |r| ≤ ln 2 / 2, then the Taylor polynomial of degree 7 for e^r, whose
/// remainder there is below r⁸/8! = 5e-9, a twelfth of a unit in the last place.
inline Lanes exp(Lanes x) noexcept {
  x = x < splat(-104.0F) ? splat(-104.0F) : x;  // comparisons are false for NaN, which so passes through
  x = x > splat(89.0F) ? splat(89.0F) : x;
  constexpr float kRoundToInteger = 0x1.8p23F;  // adding it leaves no fraction bits; its low mantissa bits hold n
  const Lanes shifted = x * 0x1.715476p0F + kRoundToInteger;
  const Lanes n = shifted - kRoundToInteger;
  const Lanes r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // the first product is exact: 15 bits by 8
  Lanes power = r * (1.0F / 5040) + (1.0F / 720);
  power = power * r + (1.0F / 120);
  power = power * r + (1.0F / 24);
  power = power * r + (1.0F / 6);
  power = power * r + 0.5F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  // 2^n in two factors, since n may lie outside the range of one exponent.
  const IntLanes exponent = reinterpret_cast<IntLanes>(shifted) - 0x4b400000;
  const IntLanes half = exponent >> 1;
  const auto factor = [](IntLanes e) { return reinterpret_cast<Lanes>((e + 127) << 23); };
  return power * factor(half) * factor(exponent - half);
}

}  // namespace kvs::cpu
