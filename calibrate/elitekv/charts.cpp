// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/charts.h"

#include "draw/numbers.h"

namespace kvs::inline calibrate {

EliteMap elite_map(const EliteConfig& config, std::size_t chunks) {
  EliteMap map{.heading = "", .layers = config.layers, .chunks = chunks, .elite = {}};
  for (const auto& heads : config.picks) {
    auto& row = map.elite.emplace_back();
    for (const ElitePicks& head : heads) row.push_back(head.chunks);
  }
  return map;
}

EliteSweep elite_sweep(const std::vector<EliteTrial>& trials) {
  EliteSweep sweep;
  for (const EliteTrial& trial : trials)
    if (trial.is_finite()) sweep.trials.push_back({trial.r, trial.d_ckv, trial.joint, trial.nll});
  if (!trials.empty()) sweep.nll_full = trials.front().nll_full;
  return sweep;
}

std::vector<draw::Figure> elite_figures(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                                        std::size_t held_out, std::size_t tokens) {
  const auto extent = [&](std::size_t count) {
    return draw::counted(count, "document") + " of " + std::to_string(tokens) + " tokens";
  };
  EliteMap map = elite_map(config, model.chunks());
  map.heading = model.name + " · RoPElite, p = " + std::to_string(config.norm) + ", r = " + std::to_string(config.r) +
                " · " + extent(documents);
  if (config.granularity == Granularity::kQueryHead) map.head_word = "Query head";
  std::vector<draw::Figure> figures{{"_elite", elite_chart(map)}};
  if (config.trials.empty()) return figures;
  const EliteTrial& best = best_trial(config);
  const double share = static_cast<double>(2 * best.r * model.kv_heads() + best.d_ckv) /
                       static_cast<double>(2 * model.kv_heads() * model.head_dim());
  EliteSweep sweep = elite_sweep(config.trials);
  sweep.heading =
      model.name + " · EliteKV, caches of " + draw::shown_percent(share) + " · " + extent(held_out) + " held out";
  if (config.gqa && config.gqa->is_finite()) {
    sweep.gqa_heads = config.gqa->heads;
    sweep.nll_gqa = config.gqa->nll;
  }
  figures.push_back({"_trials", elite_sweep_chart(sweep)});
  return figures;
}

}  // namespace kvs::inline calibrate
