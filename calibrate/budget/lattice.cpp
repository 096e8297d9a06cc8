// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/lattice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace kvs::inline calibrate {
namespace {

/// Creates a lattice with settings and steps that all layers share.
BudgetLattice shared_lattice(CacheSizes& sizes, const std::vector<Json>& settings,
                             const std::vector<std::vector<std::size_t>>& steps, std::size_t start,
                             std::span<const std::size_t> layers) {
  BudgetLattice lattice{std::vector(layers.size(), settings), {}, start};
  lattice.layers.resize(layers.size());
  for (std::size_t candidate = 0; candidate < settings.size(); ++candidate) {
    const std::vector<std::size_t> bytes = sizes.by_layer(settings[candidate]);
    for (std::size_t n = 0; n < layers.size(); ++n) lattice.layers[n].push_back({bytes[layers[n]], steps[candidate]});
  }
  return lattice;
}

/// Returns true if two settings differ in exactly one parameter.
bool differ_in_one(const Json& a, const Json& b) {
  const auto differences =
      std::ranges::count_if(a.items(), [&](const auto& item) { return b.value(item.key(), Json()) != item.value(); });
  return a.size() == b.size() && differences == 1;
}

}  // namespace

BudgetLattice sized_lattice(CacheSizes& sizes, const ScaledSettings& scaled, std::span<const std::size_t> layers) {
  constexpr int kSteps = 3;  // steps per octave, in both directions
  std::vector<Json> settings;
  std::size_t start = 0;
  for (int step = -kSteps; step <= kSteps; ++step) {
    auto one = scaled(std::exp2(static_cast<double>(step) / kSteps));
    if (!one || std::ranges::find(settings, *one) != settings.end()) continue;
    if (step <= 0) start = settings.size();
    settings.push_back(std::move(*one));
  }
  std::vector<std::vector<std::size_t>> steps(settings.size());
  for (std::size_t larger = 1; larger < steps.size(); ++larger) {
    steps[larger].push_back(larger - 1);
    steps[larger - 1].push_back(larger);
  }
  return shared_lattice(sizes, settings, steps, start, layers);
}

void add_own_values(const std::string& parameter, const Json& own, BudgetLattice& lattice) {
  const std::size_t shared = own.size();
  for (std::size_t candidate = 0; candidate < shared; ++candidate)
    for (std::size_t n = 0; n < lattice.layers.size(); ++n) {
      auto& candidates = lattice.layers[n];
      LayerCandidate counterpart{candidates[candidate].size, {}};
      for (const std::size_t step : candidates[candidate].steps) counterpart.steps.push_back(shared + step);
      Json settings = lattice.settings[n][candidate];
      settings[parameter] = own.at(candidate).at(n);
      if (settings != lattice.settings[n][candidate]) {
        candidates[candidate].steps.push_back(shared + candidate);
        counterpart.steps.push_back(candidate);
      }
      candidates.push_back(std::move(counterpart));
      lattice.settings[n].push_back(std::move(settings));
    }
}

BudgetLattice plain_lattice(CacheSizes& sizes, const std::vector<Json>& settings, std::size_t start,
                            std::span<const std::size_t> layers) {
  std::vector<std::size_t> order(settings.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return sizes.total(settings[n]); });
  std::vector<std::vector<std::size_t>> steps(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    std::map<std::string, std::size_t> next;  // by the parameter that differs
    const Json& from = settings[order[rank]];
    for (std::size_t larger = rank + 1; larger < order.size(); ++larger) {
      const Json& to = settings[order[larger]];
      if (!differ_in_one(from, to)) continue;
      for (const auto& [name, value] : from.items())
        if (to.at(name) != value) next.emplace(name, order[larger]);
    }
    for (const auto& [name, larger] : next) {
      steps[order[rank]].push_back(larger);
      steps[larger].push_back(order[rank]);
    }
  }
  return shared_lattice(sizes, settings, steps, start, layers);
}

BudgetLattice skipping_lattice(CacheSizes& sizes, const Json& uniform, std::span<const std::size_t> layers) {
  Json skipped = uniform;
  skipped["type_skip_layers"] = std::vector<std::size_t>(layers.begin(), layers.end());
  const std::vector<std::size_t> coded = sizes.by_layer(uniform), plain = sizes.by_layer(skipped);
  BudgetLattice lattice;
  lattice.settings.reserve(layers.size());
  lattice.layers.reserve(layers.size());
  for (const std::size_t layer : layers) {
    skipped["type_skip_layers"] = std::vector{layer};
    lattice.settings.push_back({uniform, skipped});
    const bool differs = coded[layer] != plain[layer];  // not where the engine itself skips the layer
    lattice.layers.push_back(
        {{coded[layer], differs ? std::vector<std::size_t>{1} : std::vector<std::size_t>{}}, {plain[layer], {0}}});
  }
  return lattice;
}

Json skipping_settings(Json uniform, std::span<const std::size_t> layers, const LayerChoice& choice) {
  auto skipped = uniform.at("type_skip_layers").get<std::set<std::size_t>>();
  for (std::size_t n = 0; n < layers.size(); ++n)
    if (choice[n] == 1) skipped.insert(layers[n]);
  uniform["type_skip_layers"] = skipped;
  return uniform;
}

Json by_layer_settings(const std::vector<Json>& layers) {
  Json all = layers.front();
  for (auto& [name, value] : all.items()) {
    if (std::ranges::all_of(layers, [&](const Json& layer) { return layer.at(name) == layers.front().at(name); }))
      continue;
    value = Json::array();
    for (const Json& layer : layers) value.push_back(layer.at(name));
  }
  return all;
}

}  // namespace kvs::inline calibrate
