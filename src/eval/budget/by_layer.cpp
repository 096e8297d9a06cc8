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

/// The best candidates for each of the best values of the parameter that layers choose.
std::vector<RankedSettings> variants_of(const std::string& parameter, std::span<const RankedSettings> ranked) {
  constexpr std::size_t kMost = 3;
  std::vector<RankedSettings> variants{ranked.front()};
  if (parameter.empty()) return variants;
  const auto value = [&](const RankedSettings& one) { return one.settings.at(parameter); };
  for (const RankedSettings& one : ranked)
    if (variants.size() < kMost && std::ranges::find(variants, value(one), value) == variants.end())
      variants.push_back(one);
  return variants;
}

BudgetLattice lattice_of(BudgetSpace& space, std::span<const RankedSettings> ranked,
                         std::span<const std::size_t> layers) {
  if (space.method().sized == nullptr) {
    std::vector<Json> all = space.unsized();
    const auto start = std::ranges::find(all, ranked.front().settings) - all.begin();
    return plain_lattice(space.sizes(), std::move(all), static_cast<std::size_t>(start), layers);
  }
  const std::vector<RankedSettings> variants = variants_of(std::string(space.grid().by_layer), ranked);
  const auto scaled = [&](std::size_t n, double share) { return space.scaled(variants[n].candidate, share); };
  return sized_lattice(space.sizes(), variants.size(), scaled, layers);
}

}  // namespace

Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::span<const RankedSettings> ranked, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, LossLog& log) {
  const Json& uniform = ranked.front().settings;
  const auto named = uniform.at("layers").get<std::vector<std::size_t>>();
  const std::vector<std::size_t> layers = trading_layers(space.model(), named);
  const BudgetLattice lattice = lattice_of(space, ranked, layers);
  const Cache cache = space.cache(uniform);
  LayerLosses losses(
      decoder, documents, layers,
      [&](std::size_t n, std::size_t candidate) { return space.layer_cache(lattice.settings[candidate], layers[n]); },
      cache.prefix(), cache.positions(space.tokens()));
  LayerBudget budget{lattice.layers, space.bytes() - space.sizes().total(uniform), rounds, layers.size()};
  for (const auto& candidates : lattice.layers) budget.size += candidates[lattice.start].size;
  const LayerAllocation found =
      allocate_layers(budget, LayerChoice(layers.size(), lattice.start),
                      [&](const LayerChoice& choice) { return log.next([&] { return losses.divergence(choice); }); });
  std::vector<Json> of_layers;
  for (const std::size_t layer : named) {
    const auto n = static_cast<std::size_t>(std::ranges::find(layers, layer) - layers.begin());
    of_layers.push_back(n == layers.size() ? uniform : lattice.settings[found.choice[n]]);
  }
  return by_layer_settings(of_layers);
}

std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept {
  constexpr std::size_t kStepsOfACandidate = 4;
  return 1 + (rounds * kStepsOfACandidate + 1) * model.layers;
}

}  // namespace kvs
