// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor_view.h"
#include "kernels/calibration_ops.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// Elite chunks per query head, or shared by the query heads of a KV head (their errors are added).
enum class Granularity { kQueryHead, kKvHead };

/// The layers and heads that a search covers.
struct EliteGeometry {
  std::vector<std::size_t> layers;  // ascending
  std::size_t query_heads = 0, kv_heads = 0;
  std::size_t chunks = 0;  // rotated channels of a head / 2

  std::size_t heads(Granularity granularity) const noexcept {
    return granularity == Granularity::kKvHead ? kv_heads : query_heads;
  }
};

/// The elite chunks of one head in pick order, and the score error after each pick. The error is the sum over documents
/// and causal pairs of |score with the chunks so far rotated − fully rotated score|^p, for unscaled scores.
struct ElitePicks {
  std::vector<std::size_t> chunks;
  std::vector<double> errors;
};

/// Sums over the text for the search with p = 2: Gram matrices of the chunks' score differences, accumulated over
/// documents in order. All state is in the vectors, so that a journal can keep it.
struct RopeStatistics {
  RopeStatistics(EliteGeometry geometry, bool with_norms);

  /// Adds one document: one visit of `source`, linear in tokens.
  void add(CalibrationOps& ops, StateSource& source, std::size_t document);

  /// Returns the layer's matrices [head, chunk, chunk]; per KV head, the sum over its query heads.
  /// @param layer  index in geometry.layers
  std::vector<double> grams(std::size_t layer, Granularity granularity) const;
  /// [head, chunk]: mean over tokens (and the group's query heads) of ‖q_c‖ times mean over tokens of ‖k_c‖.
  std::vector<double> contributions(std::size_t layer, Granularity granularity) const;

  EliteGeometry geometry;
  double tokens = 0;
  std::vector<double> gram;         // [layer, query_head, chunk, chunk]
  std::vector<double> query_norms;  // [layer, query_head, chunk]: Σ_tokens ‖q_c‖; empty without norms
  std::vector<double> key_norms;    // [layer, kv_head, chunk]
};

/// Greedy search with p = 2: each pick is the chunk whose rotation leaves the smallest error, the lowest index on ties.
/// Every error is a sum over the remaining chunks, so there is no cancellation against chunks already picked.
/// @param gram  [chunk, chunk] of one head
/// @throws Error kUsage if count is not 1 … chunks.   Cost O(count · chunks²).
/// Source: EliteKV, RoPElite (algorithm 1) with a squared distance.
ElitePicks pick_elite(TensorView<const double, 2> gram, std::size_t count);

/// Returns the errors (p = 2) that remain after chunks picked in a given order.
ElitePicks errors_of(TensorView<const double, 2> gram, std::vector<std::size_t> chunks);

/// Returns elite sets that share no chunk within a layer, `count` chunks for every head: decides which head gets which
/// frequency. Minimises the sum of the heads' errors (p = 2). The errors are quadratic in the sets, so an assignment on
/// marginal gains would not be exact either. Picks greedily over all (head, chunk) and then exchanges chunks, between
/// two heads or with a free chunk, while that helps. The result is a local optimum under single exchanges, not proven
/// to be the best; deterministic.
/// @param grams  [head, chunk, chunk] of one layer
/// @throws Error kUsage if heads · count > chunks.
std::vector<ElitePicks> pick_disjoint(TensorView<const double, 3> grams, std::size_t count);

enum class EliteBaseline { kUniform, kContribution, kHigh, kLow };

/// Returns elite chunks chosen without a search. Uniform: ⌊i (chunks − 1)/(count − 1)⌋; contribution: the largest
/// scores in descending order, lowest index on ties; high: 0 … count − 1 (the highest frequencies); low: the last
/// `count`.
/// @param contributions  [chunk]; read only for kContribution
std::vector<std::size_t> baseline_chunks(EliteBaseline baseline, std::size_t chunks, std::size_t count,
                                         std::span<const double> contributions);

/// Greedy search with p = 1, the public code's distance: one pass over all documents per pick, quadratic in tokens.
/// Call add() for every document in order, then finish_pass(), until done().
class DistanceSearch {
 public:
  DistanceSearch(EliteGeometry geometry, Granularity granularity, std::size_t count);
  /// Computes errors of chunks in given orders, without a search. orders: [layer][head][pick], all of one length.
  DistanceSearch(EliteGeometry geometry, Granularity granularity,
                 std::vector<std::vector<std::vector<std::size_t>>> orders);

  bool done() const noexcept { return pass_ == count_; }
  std::size_t pass() const noexcept { return pass_; }
  /// Adds one document to the sums of this pass.
  void add(CalibrationOps& ops, StateSource& source, std::size_t document);
  /// Picks one chunk for every layer and head.
  void finish_pass();
  /// [layer][head]
  const std::vector<std::vector<ElitePicks>>& picks() const noexcept { return picks_; }

  /// The sums of the current pass [layer, query_head, chunk], for a journal.
  std::span<double> sums() noexcept { return sums_; }
  /// Continues after the passes in `picks` [layer][head], with the current pass's sums as returned by sums().
  /// @throws Error kInternal if the sizes do not match this search.
  void restore(std::vector<std::vector<ElitePicks>> picks, std::span<const double> sums);

 private:
  std::size_t pick(std::size_t layer, std::size_t head, std::span<const double> errors) const;

  EliteGeometry geometry_;
  Granularity granularity_;
  std::size_t count_, pass_ = 0;
  std::vector<std::vector<std::vector<std::size_t>>> orders_;  // empty: search
  std::vector<std::vector<ElitePicks>> picks_;                 // [layer][head]
  std::vector<double> sums_;                                   // [layer, query_head, chunk]
  std::vector<std::uint8_t> rotated_;                          // [layer, query_head, chunk]
};

}  // namespace kvs::inline calibrate
