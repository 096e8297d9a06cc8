// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/common/attention_pairs.h"
#include "calibrate/elitekv/ropelite.h"

namespace kvs::inline calibrate {

/// Sums over the attention of a text, accumulated over documents in order. All state is in the vectors, so that a
/// journal can keep it.
struct AttentionStatistics {
  /// @param rules    of each layer of `geometry`
  /// @param d_model  0: no moments of x
  AttentionStatistics(EliteGeometry geometry, std::vector<ScoreRule> rules, std::size_t d_model);

  /// Adds one document: one visit of `source`, AttentionPairs::kQueries queries per head.
  void add(CalibrationOps& ops, StateSource& source, std::size_t document);

  /// [feature, feature] of a query head: AttentionPairs::add().  @param layer  index in geometry.layers
  TensorView<const double, 2> pairs_of(std::size_t layer, std::size_t query_head) const;
  /// Like RopeStatistics::grams(), for the weighted and centred differences of scores.
  std::vector<double> grams(std::size_t layer, Granularity granularity) const;

  EliteGeometry geometry;
  std::vector<double> pairs;    // [layer, query_head, feature, feature]
  std::vector<double> moments;  // [layer, d_model, d_model]: Σ x xᵀ, weighted by mean mass over query heads

 private:
  std::vector<ScoreRule> rules_;
  std::size_t d_model_;
};

}  // namespace kvs::inline calibrate
