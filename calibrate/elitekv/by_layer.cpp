// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/by_layer.h"

#include <algorithm>
#include <functional>
#include <map>

#include "calibrate/common/layer_losses.h"
#include "calibrate/elitekv/caches.h"
#include "calibrate/elitekv/factors.h"
#include "calibrate/elitekv/jlrd.h"
#include "calibrate/elitekv/memory.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kStepsOfACandidate = 4;  // at most

/// Returns `layer` reduced to the leading `rank` of its singular values.
EliteLayer truncated(EliteLayer layer, std::size_t rank, std::size_t d_model) {
  const std::size_t rows = layer.up.size() / layer.rank;
  std::vector<float> up;
  up.reserve(rows * rank);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from = layer.up.begin() + static_cast<std::ptrdiff_t>(row * layer.rank);
    up.insert(up.end(), from, from + static_cast<std::ptrdiff_t>(rank));
  }
  layer.up = std::move(up);
  layer.down.resize(rank * d_model);
  layer.rank = rank;
  return layer;
}

/// The caches of every layer and candidate, factorised on first use, once for each layer and r.
class EliteChoices {
 public:
  EliteChoices(const FactorInput& input, Backend& backend, const EliteSearch& search, const EliteConfig& config,
               const EliteLattice& lattice, std::size_t document)
      : input_(input),
        backend_(backend),
        search_(search),
        config_(config),
        lattice_(lattice),
        document_(document),
        last_(config.layers.size()) {
    config_.fitted_outputs = false;
  }

  std::unique_ptr<LayerCache> make(std::size_t n, std::size_t candidate) {
    auto& [of, products] = last_[n];
    if (!products || of != candidate) {
      const EliteAllocation size = lattice_.sizes[candidate];
      const EliteLayer layer = truncated(widest(n, size.r), size.d_ckv, model().d_model);
      products = make_elite_products(backend_, layer, elite_layer_shape(model(), layer.layer, document_));
      of = candidate;
    }
    return make_elitekv_cache(products);
  }

 private:
  const ModelConfig& model() const { return input_.source.config(); }

  /// Returns the layer with the largest rank of a candidate with this r.
  const EliteLayer& widest(std::size_t n, std::size_t r) {
    const auto found = layers_.find({n, r});
    if (found != layers_.end()) return found->second;
    check_interrupt();
    config_.r = r;
    config_.rank = 0;
    for (const EliteAllocation& size : lattice_.sizes)
      if (size.r == r) config_.rank = std::max(*config_.rank, size.d_ckv);
    auto& picks = picks_[r];
    if (picks.empty()) picks = search_.picks(r);
    config_.picks = picks;
    config_.singular_values.clear();
    const auto tensors = factorise_layer(input_, n, config_);
    return layers_.emplace(std::pair(n, r), elite_layer(config_, n, input_.source, reader_of(tensors))).first->second;
  }

  const FactorInput& input_;
  Backend& backend_;
  const EliteSearch& search_;
  EliteConfig config_;
  const EliteLattice& lattice_;
  std::size_t document_;                                                            // tokens of one document
  std::map<std::size_t, std::vector<std::vector<ElitePicks>>> picks_;               // by r
  std::map<std::pair<std::size_t, std::size_t>, EliteLayer> layers_;                // by n and r
  std::vector<std::pair<std::size_t, std::shared_ptr<const EliteProducts>>> last_;  // [n] of a candidate
};

}  // namespace

EliteLattice elite_lattice(const ModelConfig& model, EliteAllocation start, const EliteByLayerPlan& plan) {
  constexpr int kSteps[] = {2, 3};       // of r and of the size, in both directions
  constexpr std::size_t kSizeSteps = 8;  // a step is an eighth of the size
  const std::size_t per_chunk = 2 * model.kv_heads(), size = per_chunk * start.r + start.d_ckv;
  std::size_t r_step = 1;
  while (r_step * per_chunk % plan.rank_step != 0) ++r_step;
  const std::size_t size_step = plan.rank_step * std::max<std::size_t>(1, size / kSizeSteps / plan.rank_step);
  EliteLattice lattice;
  std::map<std::pair<int, int>, std::size_t> places;
  for (int i = -kSteps[0]; i <= kSteps[0]; ++i)
    for (int j = -kSteps[1]; j <= kSteps[1]; ++j) {
      const auto r = static_cast<std::int64_t>(start.r) + i * static_cast<std::int64_t>(r_step),
                 values = static_cast<std::int64_t>(size) + j * static_cast<std::int64_t>(size_step),
                 d_ckv = values - r * static_cast<std::int64_t>(per_chunk);
      const bool is_start = i == 0 && j == 0;
      if (!is_start && (r < 1 || d_ckv < static_cast<std::int64_t>(plan.rank_step))) continue;
      const EliteAllocation one{static_cast<std::size_t>(r), static_cast<std::size_t>(d_ckv)};
      const std::size_t most = plan.more_parameters
                                   ? full_rank(model, one.r, true)
                                   : no_extra_parameters_rank(model.d_model, model.kv_heads(), model.head_dim(), one.r);
      if (!is_start && (one.r > plan.max_r || one.d_ckv > most)) continue;
      places[{i, j}] = lattice.sizes.size();
      lattice.sizes.push_back(one);
      lattice.candidates.push_back({static_cast<std::size_t>(values), {}});
    }
  for (const auto& [place, candidate] : places)
    for (const auto& [i, j] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}})
      if (const auto next = places.find({place.first + i, place.second + j}); next != places.end())
        lattice.candidates[candidate].steps.push_back(next->second);
  lattice.start = places.at({0, 0});
  return lattice;
}

double by_layer_memory(const ModelConfig& model, const EliteConfig& config, const EliteByLayerPlan& plan,
                       std::size_t documents, std::size_t tokens) {
  const EliteLattice lattice = elite_lattice(model, config.size_of(0), plan);
  std::map<std::size_t, std::size_t> ranks;  // by r
  for (const EliteAllocation& size : lattice.sizes) ranks[size.r] = std::max(ranks[size.r], size.d_ckv);
  double bytes = static_cast<double>(sizeof(float) * documents * tokens * model.d_model);  // of a layer
  for (const auto& [r, rank] : ranks) bytes += elite_layer_bytes(model, config, {r, rank});
  return static_cast<double>(config.layers.size()) * bytes;
}

void allocate_by_layer(const FactorInput& input, Decoder& decoder, const EliteSearch& search,
                       const EliteByLayerPlan& plan, const EliteByLayerText& text, EliteConfig& config,
                       const std::function<void(std::size_t, std::size_t)>& done) {
  const std::size_t layers = config.layers.size();
  const EliteLattice lattice = elite_lattice(input.source.config(), config.size_of(0), plan);
  EliteChoices choices(input, decoder.model().backend(), search, config, lattice, text.held.front().size());
  const auto make = [&](std::size_t n, std::size_t candidate) { return choices.make(n, candidate); };
  LayerLosses measured(decoder, text.measured, config.layers, make);
  const LayerBudget budget{std::vector(layers, lattice.candidates), layers * lattice.candidates[lattice.start].size,
                           plan.rounds, layers};
  const std::size_t most = 1 + budget.rounds * kStepsOfACandidate * layers + budget.exchanges;
  std::size_t count = 0;
  const LayerChoice uniform(layers, lattice.start);
  const LayerAllocation found = allocate_layers(budget, uniform, [&](const LayerChoice& choice) {
    done(count++, most);
    return measured.divergence_or_overflow(choice);
  });

  LayerLosses held(decoder, text.held, config.layers, make);
  const std::vector<double> nll = held.nll(found.choice);
  EliteByLayer& result = config.allocation.emplace();
  result.difference = paired_difference(nll, held.nll(uniform));
  result.layers_won = result.difference.interval && result.difference.interval->second < 0;
  result.measured = found.measured;
  if (!result.layers_won) return;
  for (const std::size_t candidate : found.choice) config.by_layer.push_back(lattice.sizes[candidate]);
  config.r = std::ranges::max_element(config.by_layer, {}, &EliteAllocation::r)->r;
  config.rank = std::ranges::max_element(config.by_layer, {}, &EliteAllocation::d_ckv)->d_ckv;
}

}  // namespace kvs::inline calibrate
