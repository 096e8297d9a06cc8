// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "calibrate/lagkv/lagkv_scores.h"
#include "results/token_scores.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// LagKV's scores of one document's tokens, and which tokens are kept, by layer and KV head.
struct TokenScores {
  std::vector<std::size_t> heads;  // [layer]
  std::size_t first = 0;           // the first scored token: S
  std::size_t tokens = 0;          // number of scored tokens, a multiple of L
  /// [layer][head, token] from `first` on, times L/2: 1 is the score of a token if all tokens of a partition are alike.
  std::vector<double> relative;
  std::vector<bool> kept;  // [layer][head, token]

  std::span<const double> row(std::size_t layer, std::size_t head) const {
    return std::span(relative).subspan(row_of(layer, head) * tokens, tokens);
  }
  bool is_kept(std::size_t layer, std::size_t head, std::size_t token) const {
    return kept[row_of(layer, head) * tokens + token];
  }

 private:
  std::size_t row_of(std::size_t layer, std::size_t head) const {
    return std::accumulate(heads.begin(), heads.begin() + static_cast<std::ptrdiff_t>(layer), head);
  }
};

/// Scores each partition of L tokens after the sinks that another partition follows, from the states of a pass with the
/// full cache (LagKV's prefill: attend to all, compress afterwards). The last partition and the rest are always kept.
/// @param layers   ascending
/// @param options  variant lag or local; l2 has no relative score
/// @throws Error kData if the document has fewer than S + 2L tokens
TokenScores score_tokens(StateSource& source, std::size_t document, std::span<const std::size_t> layers,
                         const LagkvOptions& options);

/// Returns the mean share of a KV head's kept tokens that another head of the layer also keeps: about r if heads chose
/// independently; 1 with one head.
double head_overlap(const TokenScores& scores, std::size_t layer);

/// Fills in the scores, rounded to a figure's digits, and the positions of the kept tokens.
/// @param result  holds the run's head
TokenScoresResult scores_result(TokenScoresResult result, const TokenScores& scores);

}  // namespace kvs::inline calibrate
