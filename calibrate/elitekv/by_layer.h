#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/common/layer_budget.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/elitekv/factors.h"
#include "calibrate/elitekv/search.h"
#include "model/decoder.h"

namespace kvs {

struct EliteByLayerPlan {
  std::size_t rank_step = 0;     // every d_ckv differs from the config's rank by a multiple of it
  std::size_t max_r = 0;         // of a layer
  bool more_parameters = false;  // ranks above no_extra_parameters_rank, too
  std::size_t rounds = 1;        // of marginal losses (allocate_layers)
};

/// The documents of an allocation by layer.
struct EliteByLayerText {
  std::span<const std::vector<std::int32_t>> measured;  // losses are measured on; the search may have seen them
  std::span<const std::vector<std::int32_t>> held;      // nothing was chosen by: they decide
};

/// Lets the layers of `config` trade steps of r and d_ckv under the size that its r and rank have in all of them:
/// allocate_layers() by the divergence from the full cache's predictions. Sizes that do better on `held`, by their NLL,
/// become config.by_layer; config.allocation says how it went. Memory: of each layer its factors for up to five values
/// of r, each of the greatest rank (smaller ones are the first columns), and the streams of LayerLosses.
/// @param search  which picks chunks;  @param input  its sums
/// @param config  J-LRD with r and rank
/// @param done    called before each joint loss with their number so far and at most
void allocate_by_layer(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       const EliteByLayerPlan& plan, const EliteByLayerText& text, EliteConfig& config,
                       const std::function<void(std::size_t, std::size_t)>& done);

/// Bytes of those factors and streams at most, for `documents` of `tokens`.
double by_layer_memory(const ModelConfig& model, const EliteConfig& config, const EliteByLayerPlan& plan,
                       std::size_t documents, std::size_t tokens);

/// The candidates of every layer around one size: r and the size each a few steps up and down, with a d_ckv of at least
/// one step. Steps: one of r at equal size, or one of size at equal r.
struct EliteLattice {
  std::vector<EliteAllocation> sizes;  // [candidate]
  std::vector<LayerCandidate> candidates;
  std::size_t start = 0;
};
EliteLattice elite_lattice(const ModelConfig& model, EliteAllocation start, const EliteByLayerPlan& plan);

}  // namespace kvs
