#pragma once

#include <cstddef>

#include "model/decoder.h"

namespace kvs {

/// How far predictions are from those of another pass over the same tokens, summed over tokens.
struct Divergence {
  double kl = 0;           // nats: Σ_v p log(p / q), p the other pass's distribution
  std::size_t agreed = 0;  // tokens whose most probable successor is the same
  std::size_t tokens = 0;
  double squares = 0;  // of the tokens' KL divergences

  Divergence& operator+=(const Divergence& other) noexcept;
};

/// Tokens [from, to) of a document, of which a group begins at `first`.
struct ComparedTokens {
  std::size_t first, from, to;
};

/// Compares predictions after some tokens of `group` with those of `reference`, which holds the document; both are
/// finished passes. Cost: two products with the head; memory for the logits of a few tokens.
Divergence divergence(Decoder& decoder, const ResidualStream& reference, const ResidualStream& group,
                      const ComparedTokens& tokens);

}  // namespace kvs
