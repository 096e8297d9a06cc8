// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/by_layer.h"

#include <algorithm>
#include <set>
#include <string>

#include "calibrate/budget/lattice.h"
#include "calibrate/common/layer_losses.h"
#include "core/error.h"
#include "eval/document_loss.h"
#include "io/record.h"
#include "model/model_json.h"
#include "ranks/watch.h"

namespace kvs::inline calibrate {
namespace {

using Documents = std::span<const std::vector<std::int32_t>>;

/// Layers that take one candidate together: indices of the trading layers.
using LayerGroups = std::vector<std::vector<std::size_t>>;

constexpr std::size_t kMostEnds = 8;  // of the numbers of layers at each end that are tried: 1, 2, 4, 8

/// Returns the layers of the settings that choose what they keep.
std::vector<std::size_t> trading_layers(const BudgetSpace& space, const std::vector<std::size_t>& named) {
  if (space.is_offered()) return named;
  std::vector<std::size_t> layers;
  std::ranges::copy_if(named, std::back_inserter(layers),
                       [&](std::size_t layer) { return space.model().window(layer) == 0; });
  return layers;
}

/// Returns the first `ends` layers, those in the middle, and the last `ends`.
LayerGroups groups_of_ends(std::size_t layers, std::size_t ends) {
  LayerGroups groups(3);
  for (std::size_t n = 0; n < layers; ++n) groups[n < ends ? 0 : n < layers - ends ? 1 : 2].push_back(n);
  return groups;
}

/// Returns the ways to group layers that an engine allows; the best is kept.
std::vector<LayerGroups> groupings(TypesByLayer types, std::size_t layers) {
  std::vector<LayerGroups> all;
  if (types == TypesByLayer::kEnds)
    for (std::size_t ends = 1; ends <= kMostEnds && 2 * ends < layers; ends *= 2)
      all.push_back(groups_of_ends(layers, ends));
  if (!all.empty()) return all;
  LayerGroups groups(types == TypesByLayer::kOne ? 1 : layers);
  for (std::size_t n = 0; n < layers; ++n) groups[std::min(n, groups.size() - 1)].push_back(n);
  return {groups};
}

/// Computes the spectrum of the first `documents` of a source, which ranks share. Rank 0 has the result.
Spectrum shared_spectrum(StateSource& states, SpectrumAccumulator::Settings settings, std::size_t documents,
                         Ranks& ranks) {
  const auto ops = states.backend().make_spectral_ops();
  settings.sinks = std::min(settings.sinks, states.tokens() - 1);
  const auto empty = [&] { return SpectrumAccumulator(*ops, settings, states.tokens()); };
  SpectrumAccumulator sums = empty();
  ranks.share(
      {.last = documents, .together = states.visits_together(sums.bytes())},
      [&](std::size_t n) {
        note_document(n);
        SpectrumAccumulator document = empty();
        document.add_document(states, n);
        return UnitResult{Json(), document.take_sums()};
      },
      [&](std::size_t, const UnitResult& document) { sums.add(document.sums); });
  return ranks.is_root() ? sums.result() : Spectrum();
}

/// Returns the values that spectra propose for layers: [candidate][n] of layers[n]; all layers share candidates.
Json proposed_values(const BudgetSpace& space, const std::vector<Json>& settings,
                     const std::vector<std::size_t>& layers, StateSource& states, std::size_t documents, Ranks& ranks) {
  const ModelConfig& model = space.model();
  const Spectrum spectrum = shared_spectrum(states,
                                            {.layers = layers,
                                             .kv_heads = sizes_of(model, &AttentionConfig::kv_heads),
                                             .head_dim = sizes_of(model, &AttentionConfig::head_dim)},
                                            documents, ranks);
  Json all = Json::array();
  if (!ranks.is_root()) return all;
  for (const Json& one : settings) {
    Parameters parameters = space.parameters(one);
    all.push_back(space.grid().proposal.by_spectra(spectrum, parameters));
  }
  return all;
}

/// Checks that a candidate's recorded values, one for each of `layers`, are valid with its settings.
void check_proposal(const BudgetSpace& space, Json settings, const std::vector<std::size_t>& layers,
                    const JsonCursor& values) {
  const std::vector<double> recorded = record_reals(values, layers.size());
  for (std::size_t n = 0; n < layers.size(); ++n) try {
      settings[std::string(space.grid().proposal.parameter)] = recorded[n];
      (void)space.layer_cache(settings, layers[n]);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage) throw;
      values.at(n).fail(std::string("a value that the method takes (") + error.what() + ")");
    }
}

BudgetLattice lattice_of(BudgetSpace& space, std::size_t candidate, const Json& uniform,
                         const std::vector<std::size_t>& layers, Documents documents, StateSource* states,
                         LossLog& log) {
  if (space.types_by_layer() == TypesByLayer::kSkipped) return skipping_lattice(space.sizes(), uniform, layers);
  if (space.method().settings_for_share == nullptr) {
    const std::vector<Json> all = space.unsized();
    const auto start = std::ranges::find(all, uniform) - all.begin();
    return plain_lattice(space.sizes(), all, static_cast<std::size_t>(start), layers);
  }
  BudgetLattice lattice = sized_lattice(
      space.sizes(), [&](double share) { return space.scaled(candidate, share); }, layers);
  const LayerProposal& proposal = space.grid().proposal;
  const std::string parameter(proposal.parameter);
  if (proposal.by_spectra == nullptr || states == nullptr || layers.empty() || space.is_given(parameter))
    return lattice;
  const Json proposed = log.kept(
      [&](Ranks& ranks) {
        return proposed_values(space, lattice.settings.front(), layers, *states, documents.size(), ranks);
      },
      [&](const JsonCursor& record) {
        const std::vector<Json>& candidates = lattice.settings.front();
        if (record.array_size() != candidates.size())
          record.fail("a list for each of " + std::to_string(candidates.size()));
        for (std::size_t n = 0; n < candidates.size(); ++n) check_proposal(space, candidates[n], layers, record.at(n));
      });
  add_own_values(parameter, proposed, lattice);
  return lattice;
}

std::size_t max_positions(const BudgetSpace& space, const BudgetLattice& lattice) {
  std::set<Json> settings;  // most settings are those of all layers
  for (const auto& of_layer : lattice.settings) settings.insert(of_layer.begin(), of_layer.end());
  std::size_t most = 0;
  for (const Json& one : settings) most = std::max(most, space.cache(one).positions(space.tokens()));
  return most;
}

/// Layers that trade, with what their trades need.
struct Trading {
  const BudgetLattice& lattice;
  std::size_t bytes;  // of the layers, at most
  std::size_t rounds, documents;
  LayerLosses& losses;
  LossLog& log;

  /// Returns the allocation with a choice for each layer. Members of a group have the same steps.
  LayerAllocation allocate(const LayerGroups& groups) const {
    LayerBudget budget{{}, bytes, rounds, groups.size()};
    for (const std::vector<std::size_t>& group : groups) {
      auto& candidates = budget.layers.emplace_back(lattice.layers[group.front()]);
      for (std::size_t member = 1; member < group.size(); ++member)
        for (std::size_t one = 0; one < candidates.size(); ++one)
          candidates[one].size += lattice.layers[group[member]][one].size;
    }
    const auto of_layers = [&](const LayerChoice& choice) {
      LayerChoice whole(lattice.layers.size());
      for (std::size_t group = 0; group < groups.size(); ++group)
        for (const std::size_t n : groups[group]) whole[n] = choice[group];
      return whole;
    };
    LayerAllocation found =
        allocate_layers(budget, LayerChoice(groups.size(), lattice.start), [&](const LayerChoice& choice) {
          const LayerChoice whole = of_layers(choice);
          return log.together(
              documents, [&](std::size_t n) { return loss_or_overflow([&] { return losses.divergence(whole, n); }); });
        });
    found.choice = of_layers(found.choice);
    return found;
  }

  /// Returns the allocation of the grouping with the least loss; on equal loss, the first.
  LayerAllocation best(const std::vector<LayerGroups>& all) const {
    LayerAllocation least = allocate(all.front());
    for (std::size_t n = 1; n < all.size(); ++n)
      if (LayerAllocation other = allocate(all[n]); other.loss < least.loss) least = std::move(other);
    return least;
  }
};

/// Returns the settings of all layers from the choices of those that trade; the others keep `uniform`.
Json settings_of_choice(const BudgetSpace& space, const BudgetLattice& lattice, const Json& uniform,
                        const std::vector<std::size_t>& layers, const LayerChoice& choice) {
  if (space.types_by_layer() == TypesByLayer::kSkipped) return skipping_settings(uniform, layers, choice);
  std::vector<Json> of_layers;
  for (const auto layer : uniform.at("layers").get<std::vector<std::size_t>>()) {
    const auto n = static_cast<std::size_t>(std::ranges::find(layers, layer) - layers.begin());
    of_layers.push_back(n == layers.size() ? uniform : lattice.settings[n][choice[n]]);
  }
  return by_layer_settings(of_layers);
}

}  // namespace

Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, StateSource* states, LossLog& log) {
  const Json uniform = *space.scaled(candidate, 1);
  const std::vector<std::size_t> layers = trading_layers(space, uniform.at("layers").get<std::vector<std::size_t>>());
  const BudgetLattice lattice = lattice_of(space, candidate, uniform, layers, documents, states, log);
  LayerLosses losses(
      decoder, documents, layers,
      [&](std::size_t n, std::size_t one) { return space.layer_cache(lattice.settings[n][one], layers[n]); },
      space.cache(uniform).prefix(), max_positions(space, lattice));
  std::size_t bytes = space.bytes() - space.sizes().total(uniform);
  for (const auto& candidates : lattice.layers) bytes += candidates[lattice.start].size;
  const Trading trading{lattice, bytes, rounds, documents.size(), losses, log};
  const LayerAllocation found = trading.best(groupings(space.types_by_layer(), layers.size()));
  return settings_of_choice(space, lattice, uniform, layers, found.choice);
}

std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds, TypesByLayer types) {
  constexpr std::size_t kStepsOfACandidate = 4;  // maximum; for types: larger and smaller keys and values
  std::size_t losses = 0;
  for (const LayerGroups& groups : groupings(types, model.layers()))
    losses += 1 + (rounds * kStepsOfACandidate + 1) * groups.size();
  return losses;
}

}  // namespace kvs::inline calibrate
