#pragma once

#include <cstddef>

#include "model/decoder.h"

namespace kvs {

/// How far predictions are from those of another pass over the same tokens, summed over tokens.
struct Divergence {
  double kl = 0;           // nats: Σ_v p log(p / q), p the other pass's distribution
  std::size_t agreed = 0;  // tokens whose most probable successor is the same
  std::size_t tokens = 0;

  Divergence& operator+=(const Divergence& other) noexcept;
};

/// Compares tokens [0, count) of `group` with tokens [first, first + count) of `reference`, both finished passes.
/// Cost: two products with the head; memory for the logits of a few tokens.
Divergence divergence(Decoder& decoder, const ResidualStream& reference, std::size_t first, const ResidualStream& group,
                      std::size_t count);

}  // namespace kvs
