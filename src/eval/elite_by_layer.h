#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/layer_budget.h"
#include "eval/elite_search.h"
#include "export/elite_config.h"
#include "model/decoder.h"

namespace kvs {

struct EliteByLayerPlan {
  std::span<const std::vector<std::int32_t>> fitted;  // documents that the search has seen: losses are measured on them
  std::span<const std::vector<std::int32_t>> held;    // that nothing was chosen by: they decide
  std::size_t rank_step = 0;                          // every d_ckv differs from config's rank by a multiple of it
  std::size_t most_r = 0;
  bool more_parameters = false;  // ranks above no_extra_parameters_rank, too
  std::size_t rounds = 1;        // of marginal losses (allocate_layers)
  std::function<void(std::size_t measured, std::size_t most)> progress = {};
};

/// Lets the layers of `config` trade steps of r and d_ckv under the bytes that its r and rank take in all of them:
/// allocate_layers() by the divergence from the full cache's predictions. Sizes that do better on `held`, by their NLL,
/// become config.by_layer; config.allocation says how it went. Memory: of each layer its factors for up to five values
/// of r, each of the greatest rank (smaller ones are the first columns), and the streams of LayerLosses.
/// @param search  whose sums the factors are made of
/// @param config  J-LRD with r and rank
void allocate_by_layer(const ModelSource& source, Decoder& decoder, const EliteSearch& search, CalibrationOps& ops,
                       const EliteByLayerPlan& plan, EliteConfig& config);

/// The candidates of every layer around one size: r and the size each a few steps up and down, a d_ckv of at least one
/// step. Steps: one of r at equal size, or one of size at equal r.
struct EliteLattice {
  std::vector<EliteAllocation> sizes;  // [candidate]
  std::vector<LayerCandidate> candidates;
  std::size_t start = 0;
};
EliteLattice elite_lattice(const ModelConfig& model, EliteAllocation start, const EliteByLayerPlan& plan);

}  // namespace kvs
