// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/triattention/query_statistics.h"

namespace kvs::inline calibrate {

/// Scores the keys of one layer by the queries to expect. With the statistics of query head h, in band f with frequency
/// ω_f, a key k at position j has the score
///
///   S_h(k) = Σ_f |E q_f| |k_f| · mean_δ cos(ω_f (p + δ − j) + arg E q_f − arg k_f) + Σ_f (E|q_f| − |E q_f|) |k_f|
///
/// where p is the last position and δ = 1, 2, 4, … up to `horizon`. The first sum is the mean logit of queries E q at
/// the positions p + δ. It is the product of the rotated key with one rotated query, so the positions of keys are not
/// needed. Scores of a query head are normalised over the keys to mean 0 and deviation 1; a KV head takes the largest
/// of the query heads that read it. Source: TriAttention, equations 6 to 13. The paper divides neither term by
/// √head_dim, which normalising undoes. Deviations: a channel that never rotates is a band of its own with ω = 0. With
/// YaRN's factor on cos and sin, bands that rotate count it twice, as attention does, and others not at all.
class FutureScores {
 public:
  /// @param frequencies  of the chunks, in radians per token; @param factor  of cos and sin
  FutureScores(std::shared_ptr<const QueryStatistics> statistics, std::vector<double> frequencies, double factor,
               std::size_t horizon);

  /// Returns the scores of `rows` keys of one KV head.
  /// @param keys      [row, head_dim], rotated;  @param kv_head  of `kv_heads`
  /// @param position  of the last token
  /// Cost O(rows · head_dim) for each query head of the group. @throws Error kData for a score that is not finite
  std::vector<double> scores(std::span<const float> keys, std::size_t kv_head, std::size_t kv_heads,
                             std::size_t position) const;

 private:
  std::vector<double> future_query(std::size_t head, std::size_t position) const;
  std::vector<double> head_scores(std::span<const float> keys, std::size_t head, std::size_t position) const;

  std::shared_ptr<const QueryStatistics> statistics_;
  std::vector<double> frequencies_;  // [chunk]
  double factor_;
  std::vector<double> cosines_, sines_;  // [chunk] means over δ of cos(ω δ) and sin(ω δ)
};

}  // namespace kvs::inline calibrate
