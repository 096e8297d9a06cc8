// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/quantile_sketch.h"
#include "model/decoder.h"

namespace kvs::inline eval {

/// Difference between the predictions of two passes after one token.
struct TokenDivergence {
  double kl = 0;       // nats: Σ_v p log(p / q), where p is the reference's distribution
  bool agreed = true;  // both have the same most probable successor
};

/// Tokens [from, to) of a document, from a group that begins at `first`.
struct ComparedTokens {
  std::size_t first, from, to;
};

/// Logits of a finished pass over a document, for tokens from `first` on: [token − first, vocabulary].
struct KeptLogits {
  std::size_t first = 0;
  std::vector<float> rows = {};
};
/// Returns the logits of tokens [first, last), bit for bit those that token_divergences() computes.
KeptLogits kept_logits(Decoder& decoder, const ResidualStream& pass, std::size_t first, std::size_t last);

/// Compares predictions of some tokens of `group` with those of `reference`, which holds the whole document. Both
/// passes must be finished. Returns [token − from]. Cost: two products with the head; memory for the logits of a few
/// tokens.
/// @param kept  of `reference`, for all of these tokens: saves one of the products; nullptr: none
std::vector<TokenDivergence> token_divergences(Decoder& decoder, const ResidualStream& reference,
                                               const ResidualStream& group, const ComparedTokens& tokens,
                                               const KeptLogits* kept = nullptr);

/// A text's token and the divergence of its prediction.
struct LargestDivergence {
  double kl = 0;
  std::size_t document = 0, position = 0;  // of the text's token
  std::int32_t token = 0;
};

/// Difference between the predictions of two passes over the same tokens, over all tokens of some documents.
struct Divergence {
  double kl = 0;           // nats, sum over tokens
  std::size_t agreed = 0;  // tokens with the same most probable successor
  std::size_t tokens = 0;
  double squares = 0;  // of the tokens' KL divergences
  QuantileSketch kls = {};
  LargestDivergence largest = {};
  double changes = 0;  // sum of |Δ log p| of the text's tokens, nats
  QuantileSketch change = {};

  /// Adds a token of a single document. @param text  the text's token: `kl` is set here
  void add(const TokenDivergence& found, LargestDivergence text, double nll_change);
  /// Adds the next documents. @param documents  number of documents that this has
  void append(const Divergence& next, std::size_t documents);
};

}  // namespace kvs::inline eval
