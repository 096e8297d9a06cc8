// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/common/cache_size.h"
#include "calibrate/common/layer_budget.h"

namespace kvs::inline calibrate {

/// The candidates of layers that trade sizes under one budget.
struct BudgetLattice {
  std::vector<std::vector<Json>> settings;          // [n][candidate] of layers[n], with sizes
  std::vector<std::vector<LayerCandidate>> layers;  // [n][candidate] their stored bytes in layers[n]
  std::size_t start = 0;
};

/// Returns a layer's settings for a share of the budget; nullopt if there are none of that size.
using ScaledSettings = std::function<std::optional<Json>(double share)>;

/// Returns sizes of a method around one budget, from half to twice the budget, three per octave. A step is the next
/// size.
/// @param scaled  its settings at the whole budget are the start;  @param layers  of the model
BudgetLattice sized_lattice(CacheSizes& sizes, const ScaledSettings& scaled, std::span<const std::size_t> layers);
/// Doubles every layer's candidates: adds copies with the layer's own value of a parameter, of equal bytes and with the
/// same steps between them. A step leads from each candidate to its copy and back, unless both are equal.
/// @param own  [candidate][n] of layers[n]
void add_own_values(const std::string& parameter, const Json& own, BudgetLattice& lattice);
/// Returns the lattice of a method without a size to choose. A step changes one parameter, to the next size in bytes.
/// @param start  index in `settings`
BudgetLattice plain_lattice(CacheSizes& sizes, const std::vector<Json>& settings, std::size_t start,
                            std::span<const std::size_t> layers);

/// Returns the lattice of one type and 16 bits: each layer keeps the settings of all layers (candidate 0) or is one of
/// their `type_skip_layers` (candidate 1).
/// @param uniform  with a value for every parameter
BudgetLattice skipping_lattice(CacheSizes& sizes, const Json& uniform, std::span<const std::size_t> layers);
/// Returns the settings of all layers with those that take candidate 1 of a skipping_lattice() added to
/// `type_skip_layers`. @param choice  [n] candidate of layers[n]
Json skipping_settings(Json uniform, std::span<const std::size_t> layers, const LayerChoice& choice);

/// Combines the settings of all layers to one object, with a list where they differ.
Json by_layer_settings(const std::vector<Json>& layers);

}  // namespace kvs::inline calibrate
