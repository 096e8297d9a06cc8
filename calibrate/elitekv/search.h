// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/elitekv/attention_statistics.h"
#include "calibrate/elitekv/ropelite.h"
#include "io/checkpoint.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

struct EliteSearchPlan {
  EliteGeometry geometry;
  Granularity granularity = Granularity::kKvHead;
  int norm = 2;
  std::size_t count = 0;  // r
  std::optional<EliteBaseline> baseline;
  bool disjoint = false;
  std::size_t d_model = 0;            // 0: no second moments of x; otherwise their size
  std::vector<ScoreRule> rules = {};  // [layer]: pairs are weighted by attention, p = 2; empty: not weighted
};

/// FLOPs of the first-power search, at the rate of products: each pass takes every pair of tokens, head and chunk. 0
/// with p = 2.
double distance_flops(const EliteSearchPlan& plan, double documents, double tokens) noexcept;

/// The passes over documents that a RoPElite calibration takes, one document at a time, so that it can be saved between
/// any two. First comes one pass for Gram matrices, norms and second moments (if any of them is needed), then, for p =
/// 1, one pass per pick. A document's sums are made alone and added in the order of documents, so that others may make
/// them.
class EliteSearch {
 public:
  /// @param source    for the first pass; it may provide x
  /// @param repeated  for the passes of p = 1: the same documents, possibly held in memory
  EliteSearch(EliteSearchPlan plan, CalibrationOps& ops, StateSource& source, StateSource& repeated);

  std::size_t units() const noexcept;
  std::size_t done() const noexcept { return done_; }
  std::size_t documents() const noexcept { return source_->documents(); }
  /// Must be called before the first measure() of a pass.
  void begin_pass();
  /// Returns the number of measure() calls of this pass that run in turns (turns/turns.h).
  std::size_t together();
  /// Returns the sums of one unit (a document of the pass). Does not read what add() writes; calls may run in turns.
  std::vector<std::vector<double>> measure(std::size_t unit);
  /// Adds the sums of unit done().
  void add(std::span<const std::vector<double>> sums);
  /// Measures and adds the next unit.
  void step() {
    begin_pass();
    add(measure(done_));
  }
  /// Returns the sums so far; extra() returns the rest of the state for restore().
  std::vector<std::span<const double>> sums();
  Json extra() const;
  void restore(const Checkpoint::State& state);

  /// Returns [layer][head], once all units are done.
  std::vector<std::vector<ElitePicks>> picks() const { return picks(plan_.count); }
  /// For p = 2: returns `count` picks for each head, from the documents so far.
  std::vector<std::vector<ElitePicks>> picks(std::size_t count) const;
  /// Returns Σ x xᵀ of each layer of geometry.layers, with rules weighted by attention: [layer, d_model, d_model].
  std::span<const double> moments() const noexcept { return attention_ ? attention_->moments : moments_; }
  /// Returns Σ x xᵀ of a layer (index in geometry.layers) [d_model, d_model]; empty if not requested.
  std::span<const double> second_moment(std::size_t layer) const {
    const std::size_t size = plan_.d_model * plan_.d_model;
    return moments().subspan(layer * size, size);
  }
  /// Returns nullptr without rules.
  const AttentionStatistics* attention() const noexcept { return attention_ ? &*attention_ : nullptr; }

 private:
  std::vector<std::vector<double>> measure_statistics(std::size_t document);
  void start_distance();
  std::vector<ElitePicks> layer_picks(std::size_t layer, std::size_t count) const;

  EliteSearchPlan plan_;
  CalibrationOps* ops_;
  StateSource *source_, *repeated_;
  bool needs_statistics_;
  std::size_t done_ = 0;
  RopeStatistics statistics_;  // unused with rules
  std::optional<AttentionStatistics> attention_;
  std::vector<double> moments_;  // [layer, d_model, d_model]
  std::optional<DistanceSearch> distance_;
  std::optional<DistanceSearch> begun_;  // distance_ when the pass began
};

}  // namespace kvs::inline calibrate
