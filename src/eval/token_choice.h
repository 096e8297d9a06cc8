// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvs::inline eval {

/// How the next token is chosen from logits.
struct TokenChoice {
  double temperature = 0;  // 0: the most probable token
  std::uint64_t seed = 0;
};

/// The place of a token: its sequence of a run, and its position in the sequence's continuation.
struct TokenPlace {
  std::size_t sequence = 0, position = 0;
};

/// Chooses a token of probability softmax(logits / temperature): the largest z_v / T + g_v, where g_v = −log(−log u_v)
/// are Gumbel numbers (the Gumbel-max trick: Yellott 1977; Maddison, Tarlow and Minka 2014). The number u_v depends on
/// the seed, the place and v alone. Two caches that choose at one place use the same numbers and choose different
/// tokens only as far as their distributions differ. Of equal values the first is chosen.
/// @param logits  [vocabulary], finite.  Cost: a hash and two logarithms for each entry, with a temperature
std::int32_t choose_token(std::span<const float> logits, const TokenChoice& choice, const TokenPlace& place);

}  // namespace kvs::inline eval
