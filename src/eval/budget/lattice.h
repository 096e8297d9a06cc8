#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/layer_budget.h"
#include "policy/cache_size.h"

namespace kvs {

/// The candidates of layers that trade sizes under one budget.
struct BudgetLattice {
  std::vector<Json> settings;                       // [candidate] sizes included, the same for all layers
  std::vector<std::vector<LayerCandidate>> layers;  // [n][candidate] their stored bytes in layers[n]
  std::size_t start = 0;
};

/// The settings of a variant at a share of the budget, if there are any.
using ScaledSettings = std::function<std::optional<Json>(std::size_t variant, double share)>;

/// Sizes of a method around one budget: of each variant those from half of it to twice, three an octave. A step is the
/// next size of the same variant, or another variant of the same size.
/// @param variants  their number; the first at the whole budget is the start
/// @param layers    of the model
BudgetLattice sized_lattice(CacheSizes& sizes, std::size_t variants, const ScaledSettings& scaled,
                            std::span<const std::size_t> layers);
/// The same for a method without a size to choose. A step changes one parameter to the setting that is next in bytes.
/// @param start  of `settings`
BudgetLattice plain_lattice(CacheSizes& sizes, std::vector<Json> settings, std::size_t start,
                            std::span<const std::size_t> layers);

/// One settings object of those of each layer: a list where they differ.
Json by_layer_settings(const std::vector<Json>& layers);

}  // namespace kvs
