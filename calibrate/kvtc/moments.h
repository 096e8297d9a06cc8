// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/kvtc/products.h"
#include "model/config.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// The layers of a pool, and their heads.
struct KvtcLayers {
  std::vector<std::size_t> layers;  // ascending
  std::vector<KvtcHeads> heads;     // [layer]
  std::size_t window = 0;           // tokens that each of them reads at most; 0: all

  std::size_t values() const noexcept;  // of keys; values have as many
};

/// The most values of keys in a pool, so that covariances fit in memory.
inline constexpr std::size_t kMaxPoolValues = 8192;

/// Returns the pools of a model. Deviations: the paper's pool is all layers. Here layers with another window or other
/// chunks are apart, because they drop tokens at other times; and a pool of more than kMaxPoolValues is cut into
/// neighbouring layers, as equal as possible.
std::vector<KvtcLayers> kvtc_pools(const ModelConfig& model);

/// Sums over the tokens of a text, document by document, of keys before RoPE and of values of each pool, and runs of
/// tokens as they are. All state is in vectors of doubles, so that a checkpoint can keep it.
class KvtcMoments {
 public:
  static constexpr std::size_t kSamples = 512;  // tokens that are kept, in runs

  enum Side : std::size_t { kKeys, kValues };

  /// @param sinks  first tokens of a document, which are left out;  @param run  tokens of a run
  KvtcMoments(std::vector<KvtcLayers> pools, std::size_t sinks, std::size_t run);

  /// Adds one document of more than `sinks` tokens; all must have the same length. One visit of `source`. Calls may run
  /// in turns (turns/turns.h). O(tokens · values²) for each pool.
  void add(StateSource& source, std::size_t document);

  const std::vector<KvtcLayers>& pools() const noexcept { return pools_; }
  std::size_t run() const noexcept { return run_; }
  /// Returns the mean, [value].
  std::vector<double> mean(std::size_t pool, Side side) const;
  /// Returns the covariance, [value, value].
  std::vector<double> covariance(std::size_t pool, Side side) const;
  /// Returns the kept tokens, [token, value].
  std::vector<float> samples(std::size_t pool, Side side) const;

  /// Returns the state for a checkpoint, in the order that restore() expects.
  std::vector<std::span<const double>> state() const;
  /// @throws Error kInput for the state of other sums
  void restore(std::span<const std::vector<double>> state);

 private:
  struct PoolSums {
    std::array<std::vector<double>, 2> sums, outers, samples;  // [side]: Σ x, Σ x xᵀ (lower triangle), rows
  };

  std::vector<std::size_t> sampled(std::size_t document, std::size_t documents, std::size_t tokens) const;
  void add_rows(std::size_t pool, Side side, const std::vector<float>& rows, const std::vector<std::size_t>& sampled);

  std::vector<KvtcLayers> pools_;
  std::size_t sinks_, run_;
  std::vector<PoolSums> sums_;  // [pool]
  std::vector<double> counts_;  // tokens
};

}  // namespace kvs::inline calibrate
