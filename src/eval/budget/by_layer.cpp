#include "eval/budget/by_layer.h"

#include <algorithm>

#include "eval/budget/lattice.h"
#include "eval/layer_losses.h"

namespace kvs {
namespace {

/// Layers of the settings that choose what they keep.
std::vector<std::size_t> trading_layers(const ModelConfig& model, const std::vector<std::size_t>& named) {
  std::vector<std::size_t> layers;
  std::ranges::copy_if(named, std::back_inserter(layers), [&](std::size_t layer) { return model.window(layer) == 0; });
  return layers;
}

BudgetLattice lattice_of(BudgetSpace& space, std::size_t candidate, const Json& uniform,
                         std::span<const std::size_t> layers) {
  if (space.method().sized != nullptr)
    return sized_lattice(
        space.sizes(), [&](double share) { return space.scaled(candidate, share); }, layers);
  std::vector<Json> all = space.unsized();
  const auto start = std::ranges::find(all, uniform) - all.begin();
  return plain_lattice(space.sizes(), std::move(all), static_cast<std::size_t>(start), layers);
}

std::size_t most_positions(const BudgetSpace& space, std::span<const Json> settings) {
  std::size_t most = 0;
  for (const Json& one : settings) most = std::max(most, space.cache(one).positions(space.tokens()));
  return most;
}

}  // namespace

Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, LossLog& log) {
  const Json uniform = *space.scaled(candidate, 1);
  const auto named = uniform.at("layers").get<std::vector<std::size_t>>();
  const std::vector<std::size_t> layers = trading_layers(space.model(), named);
  const BudgetLattice lattice = lattice_of(space, candidate, uniform, layers);
  LayerLosses losses(
      decoder, documents, layers,
      [&](std::size_t n, std::size_t size) { return space.layer_cache(lattice.settings[size], layers[n]); },
      space.cache(uniform).prefix(), most_positions(space, lattice.settings));
  LayerBudget budget{lattice.layers, space.bytes() - space.sizes().total(uniform), rounds, layers.size()};
  for (const auto& candidates : lattice.layers) budget.size += candidates[lattice.start].size;
  const LayerAllocation found =
      allocate_layers(budget, LayerChoice(layers.size(), lattice.start), [&](const LayerChoice& choice) {
        return log.together(documents.size(), [&](std::size_t n) { return losses.divergence(choice, n); });
      });
  std::vector<Json> of_layers;
  for (const std::size_t layer : named) {
    const auto n = static_cast<std::size_t>(std::ranges::find(layers, layer) - layers.begin());
    of_layers.push_back(n == layers.size() ? uniform : lattice.settings[found.choice[n]]);
  }
  return by_layer_settings(of_layers);
}

std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept {
  constexpr std::size_t kStepsOfACandidate = 4;  // of a store, larger and smaller keys and values
  return 1 + (rounds * kStepsOfACandidate + 1) * model.layers;
}

}  // namespace kvs
