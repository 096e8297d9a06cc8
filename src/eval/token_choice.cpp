// SPDX-License-Identifier: Apache-2.0
#include "eval/token_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvs::inline eval {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// The output function of SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed_bits(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// Maps bits to (0, 1).
double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

std::int32_t choose_token(std::span<const float> logits, const TokenChoice& choice, const TokenPlace& place) {
  if (choice.temperature == 0) return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  const std::uint64_t stream =
      mixed_bits(mixed_bits(mixed_bits(choice.seed + kGolden) + place.sequence + kGolden) + place.position + kGolden);
  double best = -std::numeric_limits<double>::infinity();
  std::size_t chosen = 0;
  for (std::size_t v = 0; v < logits.size(); ++v) {
    const double uniform = open_unit(mixed_bits(stream + (v + 1) * kGolden)),
                 value = double{logits[v]} / choice.temperature - std::log(-std::log(uniform));
    if (value <= best) continue;
    best = value;
    chosen = v;
  }
  return static_cast<std::int32_t>(chosen);
}

}  // namespace kvs::inline eval
