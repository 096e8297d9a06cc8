// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

struct EliteByLayerPlan {
  std::size_t rank_step = 0;     // d_ckv differs from the config's rank by multiples of it
  std::size_t max_r = 0;         // largest r of a layer
  bool more_parameters = false;  // also allows ranks above no_extra_parameters_rank()
  std::size_t rounds = 1;        // rounds of marginal losses (allocate_layers())
};

/// The documents of an allocation by layer.
struct EliteByLayerText {
  std::span<const std::vector<std::int32_t>> measured;  // losses are measured on these; the search may have used them
  std::span<const std::vector<std::int32_t>> held;      // used for no choice before: they decide
};

/// Lets the layers of `config` trade steps of r and d_ckv under the size that its r and rank give for all layers. Runs
/// allocate_layers() on the divergence from the full cache's predictions. Sizes with a lower NLL on `held` become
/// config.by_layer; config.allocation records the result. Memory: the factors of each layer for up to five values of r,
/// each with the largest rank (smaller ranks are its first columns), and the streams of LayerLosses.
/// @param search  picks the chunks;  @param input  its sums
/// @param config  J-LRD with r and rank
/// @param done    called before each joint loss with the number of losses so far and their maximum
void allocate_by_layer(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       const EliteByLayerPlan& plan, const EliteByLayerText& text, EliteConfig& config,
                       const std::function<void(std::size_t, std::size_t)>& done);

/// Returns the maximum bytes of these factors and streams, for `documents` of `tokens` tokens.
double by_layer_memory(const ModelConfig& model, const EliteConfig& config, const EliteByLayerPlan& plan,
                       std::size_t documents, std::size_t tokens);

/// The candidates of every layer around one size: r and the size each a few steps up and down, with a d_ckv of at least
/// one step. A step changes r at equal size, or the size at equal r.
struct EliteLattice {
  std::vector<EliteAllocation> sizes;  // [candidate]
  std::vector<LayerCandidate> candidates;
  std::size_t start = 0;
};
EliteLattice elite_lattice(const ModelConfig& model, EliteAllocation start, const EliteByLayerPlan& plan);

}  // namespace kvs::inline calibrate
