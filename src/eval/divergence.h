#pragma once

#include <cstddef>

#include "model/decoder.h"

namespace kvs::inline eval {

/// Difference between the predictions of two passes over the same tokens, summed over tokens.
struct Divergence {
  double kl = 0;           // nats: Σ_v p log(p / q), where p is the reference's distribution
  std::size_t agreed = 0;  // tokens with the same most probable successor
  std::size_t tokens = 0;
  double squares = 0;  // of the tokens' KL divergences

  Divergence& operator+=(const Divergence& other) noexcept;
};

/// Tokens [from, to) of a document, from a group that begins at `first`.
struct ComparedTokens {
  std::size_t first, from, to;
};

/// Compares predictions of some tokens of `group` with those of `reference`, which holds the whole document. Both
/// passes must be finished. Cost: two products with the head; memory for the logits of a few tokens.
Divergence divergence(Decoder& decoder, const ResidualStream& reference, const ResidualStream& group,
                      const ComparedTokens& tokens);

}  // namespace kvs::inline eval
