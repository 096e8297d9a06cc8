#include "calibrate/elitekv/charts.h"

#include "draw/numbers.h"

namespace kvs {
namespace {

std::string extent_of(std::size_t documents, std::size_t tokens) {
  return draw::counted(documents, "document") + " of " + std::to_string(tokens) + " tokens";
}

}  // namespace

std::vector<draw::Figure> elite_figures(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                                        std::size_t held_out, std::size_t tokens) {
  std::vector<draw::Figure> figures{{"_elite", elite_chart(elite_map(config, model, documents, tokens))}};
  if (!config.trials.empty())
    figures.push_back({"_trials", elite_sweep_chart(elite_sweep(config, model, held_out, tokens))});
  return figures;
}

EliteMap elite_map(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens) {
  EliteMap map;
  map.heading = model.name + " · RoPElite, p = " + std::to_string(config.norm) + ", r = " + std::to_string(config.r) +
                " · " + extent_of(documents, tokens);
  if (config.granularity == Granularity::kQueryHead) map.head_word = "Query head";
  map.layers = config.layers;
  map.chunks = model.chunks();
  for (const auto& heads : config.picks) {
    auto& row = map.elite.emplace_back();
    for (const ElitePicks& head : heads) row.push_back(head.chunks);
  }
  return map;
}

EliteSweep elite_sweep(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens) {
  const EliteTrial& best = best_trial(config);
  const double share = static_cast<double>(2 * best.r * model.kv_heads + best.d_ckv) /
                       static_cast<double>(2 * model.kv_heads * model.head_dim);
  EliteSweep sweep{.heading = model.name + " · EliteKV, caches of " + draw::shown_percent(share) + " · " +
                              extent_of(documents, tokens) + " held out",
                   .trials = {},
                   .nll_full = best.nll_full};
  for (const EliteTrial& trial : config.trials)
    if (trial.is_finite()) sweep.trials.push_back({trial.r, trial.d_ckv, trial.joint, trial.nll});
  if (config.gqa && config.gqa->is_finite()) {
    sweep.gqa_heads = config.gqa->heads;
    sweep.nll_gqa = config.gqa->nll;
  }
  return sweep;
}

}  // namespace kvs
