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

/// Returns the layers of the settings that choose what they keep.
std::vector<std::size_t> trading_layers(const ModelConfig& model, const std::vector<std::size_t>& named) {
  std::vector<std::size_t> layers;
  std::ranges::copy_if(named, std::back_inserter(layers), [&](std::size_t layer) { return model.window(layer) == 0; });
  return layers;
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

}  // namespace

Json settings_by_layer(BudgetSpace& space, Decoder& decoder, std::size_t candidate, std::size_t rounds,
                       std::span<const std::vector<std::int32_t>> documents, StateSource* states, LossLog& log) {
  const Json uniform = *space.scaled(candidate, 1);
  const auto named = uniform.at("layers").get<std::vector<std::size_t>>();
  const std::vector<std::size_t> layers = trading_layers(space.model(), named);
  const BudgetLattice lattice = lattice_of(space, candidate, uniform, layers, documents, states, log);
  LayerLosses losses(
      decoder, documents, layers,
      [&](std::size_t n, std::size_t one) { return space.layer_cache(lattice.settings[n][one], layers[n]); },
      space.cache(uniform).prefix(), max_positions(space, lattice));
  LayerBudget budget{lattice.layers, space.bytes() - space.sizes().total(uniform), rounds, layers.size()};
  for (const auto& candidates : lattice.layers) budget.size += candidates[lattice.start].size;
  const LayerAllocation found =
      allocate_layers(budget, LayerChoice(layers.size(), lattice.start), [&](const LayerChoice& choice) {
        return log.together(documents.size(), [&](std::size_t n) {
          return loss_or_overflow([&] { return losses.divergence(choice, n); });
        });
      });
  std::vector<Json> of_layers;
  for (const std::size_t layer : named) {
    const auto n = static_cast<std::size_t>(std::ranges::find(layers, layer) - layers.begin());
    of_layers.push_back(n == layers.size() ? uniform : lattice.settings[n][found.choice[n]]);
  }
  return by_layer_settings(of_layers);
}

std::size_t by_layer_losses(const ModelConfig& model, std::size_t rounds) noexcept {
  constexpr std::size_t kStepsOfACandidate = 4;  // maximum; for types: larger and smaller keys and values
  return 1 + (rounds * kStepsOfACandidate + 1) * model.layers();
}

}  // namespace kvs::inline calibrate
