// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/triattention/query_statistics.h"
#include "model/config.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// Sums of queries before RoPE, after QK-norm, over the tokens of a text, document by document: all that
/// QueryStatistics needs. All state is in vectors of doubles, so that a checkpoint can keep it.
class QuerySums {
 public:
  /// For the layers with a KV cache.
  explicit QuerySums(const ModelConfig& model);

  /// Adds one document. One visit of `source`. Calls may run in turns (turns/turns.h).
  void add(StateSource& source, std::size_t document);
  /// Returns the averages, by layer.
  std::vector<QueryStatistics> statistics() const;

  /// Returns the state for a checkpoint, in the order that restore() expects.
  std::vector<std::span<const double>> state() const;
  void restore(const std::vector<std::vector<double>>& state) { sums_ = state; }

 private:
  std::vector<QueryStatistics> layers_;    // without numbers
  std::vector<std::vector<double>> sums_;  // [layer] Σ q [query_head, head_dim], Σ |q_f| [query_head, band], tokens
};

}  // namespace kvs::inline calibrate
