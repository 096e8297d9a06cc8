#include "eval/budget/by_layer.h"

#include <algorithm>
#include <set>

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

/// Of the text's measured documents.
Spectrum spectrum_of(const ModelConfig& model, const std::vector<std::size_t>& layers, const BudgetText& text) {
  const auto ops = make_spectral_ops(text.states->backend());
  const std::size_t tokens = text.states->tokens();
  SpectrumAccumulator::Settings settings{.layers = layers, .kv_heads = model.kv_heads, .head_dim = model.head_dim};
  settings.sinks = std::min(settings.sinks, tokens - 1);
  SpectrumAccumulator sums(*ops, std::move(settings), tokens);
  for (std::size_t document = 0; document < text.measured.size(); ++document) sums.add_document(*text.states, document);
  return sums.result();
}

/// What spectra propose to layers, but for settings that are given; empty if nothing.
LayerSettings proposed(const BudgetSpace& space, const std::vector<std::size_t>& layers, const BudgetText& text) {
  const auto by_spectra = space.grid().by_spectra;
  if (by_spectra == nullptr || text.states == nullptr || layers.empty()) return {};
  return [&space, by_spectra, spectrum = spectrum_of(space.model(), layers, text)](const Json& settings) {
    std::vector<Json> all = by_spectra(spectrum, settings);
    for (Json& one : all) one = space.with_fixed(std::move(one));
    return all;
  };
}

BudgetLattice lattice_of(BudgetSpace& space, std::size_t candidate, const Json& uniform,
                         const std::vector<std::size_t>& layers, const BudgetText& text) {
  if (space.method().sized != nullptr)
    return sized_lattice(
        space.sizes(), [&](double share) { return space.scaled(candidate, share); }, layers,
        proposed(space, layers, text));
  const std::vector<Json> all = space.unsized();
  const auto start = std::ranges::find(all, uniform) - all.begin();
  return plain_lattice(space.sizes(), all, static_cast<std::size_t>(start), layers);
}

std::size_t most_positions(const BudgetSpace& space, const BudgetLattice& lattice) {
  std::set<Json> settings;  // most are those of every layer
  for (const auto& of_layer : lattice.settings) settings.insert(of_layer.begin(), of_layer.end());
  std::size_t most = 0;
  for (const Json& one : settings) most = std::max(most, space.cache(one).positions(space.tokens()));
  return most;
}

}  // namespace

Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       const BudgetText& text, LossLog& log) {
  const Json uniform = *space.scaled(candidate, 1);
  const auto named = uniform.at("layers").get<std::vector<std::size_t>>();
  const std::vector<std::size_t> layers = trading_layers(space.model(), named);
  const BudgetLattice lattice = lattice_of(space, candidate, uniform, layers, text);
  LayerLosses losses(
      decoder, text.measured, layers,
      [&](std::size_t n, std::size_t one) { return space.layer_cache(lattice.settings[n][one], layers[n]); },
      space.cache(uniform).prefix(), most_positions(space, lattice));
  LayerBudget budget{lattice.layers, space.bytes() - space.sizes().total(uniform), rounds, layers.size()};
  for (const auto& candidates : lattice.layers) budget.size += candidates[lattice.start].size;
  const LayerAllocation found =
      allocate_layers(budget, LayerChoice(layers.size(), lattice.start), [&](const LayerChoice& choice) {
        return log.together(text.measured.size(), [&](std::size_t n) { return losses.divergence(choice, n); });
      });
  std::vector<Json> of_layers;
  for (const std::size_t layer : named) {
    const auto n = static_cast<std::size_t>(std::ranges::find(layers, layer) - layers.begin());
    of_layers.push_back(n == layers.size() ? uniform : lattice.settings[n][found.choice[n]]);
  }
  return by_layer_settings(of_layers);
}

std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept {
  constexpr std::size_t kStepsOfACandidate = 4;  // at most: of a store, larger and smaller keys and values
  return 1 + (rounds * kStepsOfACandidate + 1) * model.layers;
}

}  // namespace kvs
