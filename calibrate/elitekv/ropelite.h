#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor_view.h"
#include "kernels/calibration_ops.h"
#include "states/state_source.h"

namespace kvs {

/// Whether each query head has elite chunks of its own, or the query heads of a KV head share them (their errors
/// added).
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

/// The elite chunks of one head in pick order, and the score error that is left after each pick: the sum over documents
/// and causal pairs of |score with the chunks so far rotated − fully rotated score|^p, unscaled scores.
struct ElitePicks {
  std::vector<std::size_t> chunks;
  std::vector<double> errors;
};

/// What the search with p = 2 needs to know of the text: Gram matrices of the chunks' score differences, summed over
/// documents in their order. All of its state is in the vectors, so that a journal can keep it.
struct RopeStatistics {
  RopeStatistics(EliteGeometry geometry, bool with_norms);

  /// Adds one document: one visit of `source`, linear in tokens.
  void add(CalibrationOps& ops, StateSource& source, std::size_t document);

  /// [head, chunk, chunk]: the layer's matrices; per KV head the sum over its query heads.
  /// @param layer  index into geometry.layers
  std::vector<double> grams(std::size_t layer, Granularity granularity) const;
  /// [head, chunk]: mean over tokens (and the group's query heads) of ‖q_c‖ times mean over tokens of ‖k_c‖.
  std::vector<double> contributions(std::size_t layer, Granularity granularity) const;

  EliteGeometry geometry;
  double tokens = 0;
  std::vector<double> gram;         // [layer, query_head, chunk, chunk]
  std::vector<double> query_norms;  // [layer, query_head, chunk]: Σ_tokens ‖q_c‖; empty without norms
  std::vector<double> key_norms;    // [layer, kv_head, chunk]
};

/// Greedy search with p = 2: each pick is the chunk that leaves the smallest error, the lowest index on ties.
/// Every error is a sum over the chunks that are left, so nothing cancels against chunks already picked.
/// @param gram  [chunk, chunk] of one head
/// @throws Error kUsage if count is not 1 … chunks.   Cost O(count · chunks²).
/// Source: EliteKV, RoPElite (algorithm 1) with a squared distance.
ElitePicks pick_elite(TensorView<const double, 2> gram, std::size_t count);

/// The errors (p = 2) that chunks picked in a given order leave.
ElitePicks errors_of(TensorView<const double, 2> gram, std::vector<std::size_t> chunks);

/// Elite sets that share no chunk within a layer, `count` for every head: which head gets which frequency.
/// Minimises the sum of the heads' errors (p = 2). The errors are quadratic in the sets, so an assignment on marginal
/// gains is not exact either; this picks greedily over all (head, chunk) and then exchanges, between two heads or with
/// a free chunk, while that helps. A local optimum under single exchanges, not proven to be the best; deterministic.
/// @param grams  [head, chunk, chunk] of one layer
/// @throws Error kUsage if heads · count > chunks.
std::vector<ElitePicks> pick_disjoint(TensorView<const double, 3> grams, std::size_t count);

enum class EliteBaseline { kUniform, kContribution, kHigh, kLow };

/// Elite chunks chosen without a search. Uniform: ⌊i (chunks − 1)/(count − 1)⌋; contribution: the largest scores in
/// descending order, lowest index on ties; high: 0 … count − 1 (the highest frequencies); low: the last `count`.
/// @param contributions  [chunk]; only read for kContribution
std::vector<std::size_t> baseline_chunks(EliteBaseline baseline, std::size_t chunks, std::size_t count,
                                         std::span<const double> contributions);

/// Greedy search with p = 1, the public code's distance: one pass over all documents per pick, quadratic in tokens.
/// Call add() for every document in order, then finish_pass(), until done().
class DistanceSearch {
 public:
  DistanceSearch(EliteGeometry geometry, Granularity granularity, std::size_t count);
  /// Errors of chunks picked in given orders instead of a search. orders: [layer][head][pick], all of one length.
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

  /// The sums of the running pass [layer, query_head, chunk]: what a journal keeps and restores.
  std::span<double> sums() noexcept { return sums_; }
  /// Goes on after the passes that `picks` [layer][head] hold, with the running pass's sums as sums() gave them.
  /// @throws Error kInternal if the sizes are not this search's.
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

}  // namespace kvs
