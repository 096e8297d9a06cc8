#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/common/cache_size.h"
#include "calibrate/common/layer_budget.h"

namespace kvs {

/// The candidates of layers that trade sizes under one budget.
struct BudgetLattice {
  std::vector<std::vector<Json>> settings;          // [n][candidate] of layers[n], sizes included
  std::vector<std::vector<LayerCandidate>> layers;  // [n][candidate] their stored bytes in layers[n]
  std::size_t start = 0;
};

/// What a layer has at a share of the budget, if there is anything of that size.
using ScaledSettings = std::function<std::optional<Json>(double share)>;

/// Sizes of a method around one budget, from half of it to twice, three an octave. A step is the next of them.
/// @param scaled  of which that at the whole budget is the start;  @param layers  of the model
BudgetLattice sized_lattice(CacheSizes& sizes, const ScaledSettings& scaled, std::span<const std::size_t> layers);
/// Doubles every layer's candidates: those with its own value of a parameter follow, of the same bytes and with the
/// same steps between them. A step leads from each to its counterpart and back, unless the two are the same.
/// @param own  [candidate][n] of layers[n]
void add_own_values(const std::string& parameter, const Json& own, BudgetLattice& lattice);
/// The same for a method without a size to choose. A step changes one parameter to the setting that is next in bytes.
/// @param start  of `settings`
BudgetLattice plain_lattice(CacheSizes& sizes, const std::vector<Json>& settings, std::size_t start,
                            std::span<const std::size_t> layers);

/// One settings object of those of each layer: a list where they differ.
Json by_layer_settings(const std::vector<Json>& layers);

}  // namespace kvs
