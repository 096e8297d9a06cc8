// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/fast_math.h"
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {

LogitSum reduce_logits(const float* logits, std::size_t count) noexcept {
  constexpr float kLeast = -__builtin_inff();
  Lanes best = splat(kLeast), poison{}, sum{};
  const auto see = [&](Lanes values, Lanes padded) {
    best = larger(padded, best);
    poison += values * 0.0F;  // becomes NaN if a logit is infinite or NaN
  };
  const std::size_t whole = count / kLanes * kLanes, left = count - whole;
  for (std::size_t at = 0; at < whole; at += kLanes) see(load(logits + at), load(logits + at));
  if (left > 0) see(load_part(logits + whole, left), load_part(logits + whole, left, kLeast));
  const float most = largest(best);
  for (std::size_t at = 0; at < whole; at += kLanes) sum += exp(load(logits + at) - most);
  if (left > 0) sum += exp(load_part(logits + whole, left, kLeast) - most);  // e^−∞ = 0
  return {.largest = most, .sum = sum_of(sum + poison)};
}

void cap_logits(float* logits, std::size_t count, float softcap) noexcept {
  const float inverse = 1.0F / softcap;
  const auto capped = [&](Lanes z) { return tanh(z * inverse) * softcap + z * 0.0F; };
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) store(logits + at, capped(load(logits + at)));
  if (at < count) store_part(logits + at, capped(load_part(logits + at, count - at)), count - at);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
