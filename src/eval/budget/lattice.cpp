#include "eval/budget/lattice.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace kvs {
namespace {

/// Bytes by layer and the steps that all layers share.
void add_layers(CacheSizes& sizes, const std::vector<std::vector<std::size_t>>& steps,
                std::span<const std::size_t> layers, BudgetLattice& lattice) {
  lattice.layers.resize(layers.size());
  for (std::size_t candidate = 0; candidate < steps.size(); ++candidate) {
    const std::vector<std::size_t> bytes = sizes.by_layer(lattice.settings[candidate]);
    for (std::size_t n = 0; n < layers.size(); ++n) lattice.layers[n].push_back({bytes[layers[n]], steps[candidate]});
  }
}

/// Whether two settings have all parameters but one in common.
bool differ_in_one(const Json& a, const Json& b) {
  const auto differences =
      std::ranges::count_if(a.items(), [&](const auto& item) { return b.value(item.key(), Json()) != item.value(); });
  return a.size() == b.size() && differences == 1;
}

}  // namespace

BudgetLattice sized_lattice(CacheSizes& sizes, const ScaledSettings& scaled, std::span<const std::size_t> layers) {
  constexpr int kSteps = 3;  // an octave, either way
  BudgetLattice lattice;
  for (int step = -kSteps; step <= kSteps; ++step) {
    auto settings = scaled(std::exp2(static_cast<double>(step) / kSteps));
    if (!settings || std::ranges::find(lattice.settings, *settings) != lattice.settings.end()) continue;
    if (step <= 0) lattice.start = lattice.settings.size();
    lattice.settings.push_back(std::move(*settings));
  }
  std::vector<std::vector<std::size_t>> steps(lattice.settings.size());
  for (std::size_t larger = 1; larger < steps.size(); ++larger) {
    steps[larger].push_back(larger - 1);
    steps[larger - 1].push_back(larger);
  }
  add_layers(sizes, steps, layers, lattice);
  return lattice;
}

BudgetLattice plain_lattice(CacheSizes& sizes, std::vector<Json> settings, std::size_t start,
                            std::span<const std::size_t> layers) {
  BudgetLattice lattice{.settings = std::move(settings), .layers = {}, .start = start};
  std::vector<std::size_t> order(lattice.settings.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return sizes.total(lattice.settings[n]); });
  std::vector<std::vector<std::size_t>> steps(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    std::map<std::string, std::size_t> next;  // of the parameter that differs
    const Json& from = lattice.settings[order[rank]];
    for (std::size_t larger = rank + 1; larger < order.size(); ++larger) {
      const Json& to = lattice.settings[order[larger]];
      if (!differ_in_one(from, to)) continue;
      for (const auto& [name, value] : from.items())
        if (to.at(name) != value) next.emplace(name, order[larger]);
    }
    for (const auto& [name, larger] : next) {
      steps[order[rank]].push_back(larger);
      steps[larger].push_back(order[rank]);
    }
  }
  add_layers(sizes, steps, layers, lattice);
  return lattice;
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

}  // namespace kvs
