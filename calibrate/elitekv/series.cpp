// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/series.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "calibrate/elitekv/memory.h"
#include "calibrate/elitekv/ratio.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "io/file.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kTried = 3;  // pairs of one size

EliteShape shape_of(const ModelConfig& model) {
  return {model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
}

std::size_t max_r(const ModelConfig& model, double most) {
  const auto pairs = elite_candidates(model, most, kTried);
  return pairs.empty() ? 1 : pairs.back().size.r;
}

EliteSearchPlan search_plan(const ModelConfig& model, double most) {
  EliteSearchPlan plan;
  plan.geometry = {model.cached_layers(), model.query_heads(), model.kv_heads(), model.chunks()};
  plan.count = max_r(model, most);
  plan.d_model = model.d_model;
  for (const std::size_t layer : plan.geometry.layers) plan.rules.push_back(score_rule(model, layer));
  return plan;
}

EliteSearchPlan search_plan_of(const ModelSource& source, double most) {
  EliteSearchPlan plan = search_plan(source.config(), most);
  read_sinks(plan.rules, plan.geometry.layers, source.config(), &source);
  return plan;
}

EliteConfig planned(const EliteSearchPlan& plan) {
  EliteConfig config;
  config.layers = plan.geometry.layers;
  config.by_attention = true;
  config.search = "search";
  config.whitening = Whitening::kBoth;
  config.fitted_queries = config.fitted_outputs = true;
  return config;
}

}  // namespace

EliteSeries::EliteSeries(const ModelSource& source, Decoder& decoder, CalibrationOps& ops, StateSource& states,
                         std::span<const std::vector<std::int32_t>> fitted,
                         std::span<const std::vector<std::int32_t>> held, double most)
    : source_(source),
      decoder_(decoder),
      ops_(ops),
      fitted_(fitted),
      held_(held),
      plan_(search_plan_of(source, most)),
      search_(plan_, ops, states, states) {}

void EliteSeries::search(const FactorProgress& progress) {
  while (search_.done() < search_.units()) {
    progress("search", search_.done(), search_.units());
    check_interrupt();
    search_.step();
  }
}

void EliteSeries::write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
                        const FactorProgress& progress) {
  const ModelConfig& model = source_.config();
  const auto candidates = elite_candidates(model, share, kTried);
  if (candidates.empty())
    throw Error(ErrorCode::kUsage, "elitekv", "found no pair of r and d_ckv that makes a cache of this size");
  search(progress);
  const FactorInput input{source_, ops_, search_.moments(), fitted_.size() * fitted_.front().size(),
                          search_.attention()};
  EliteConfig config = planned(plan_);
  choose_allocation(input, decoder_, search_, candidates, held_, config,
                    [&](std::size_t done) { progress("pairs", done, candidates.size()); });
  config.picks = search_.picks(config.r);
  const std::filesystem::path factors = std::filesystem::path(file).replace_extension(".safetensors");
  OutputSet outputs;
  const std::vector<ConfigFile> files{
      write_factor_file(input, {&decoder_, fitted_}, factors, outputs, config, progress)};
  const Json json = make_config("elitekv", model, source_.sha256(), elite_parameters(config), elite_calibration(config),
                                provenance, Json::object(), files);
  outputs.add(file, dump_json(json) + "\n");
  outputs.commit(force);
}

double elite_series_memory(const ModelConfig& model, DType compute, double most) {
  EliteConfig config = planned(search_plan(model, most));
  config.rank = 0;
  for (const EliteCandidate& pair : elite_candidates(model, most, kTried)) {
    config.r = pair.size.r;
    config.rank = std::max(*config.rank, pair.size.d_ckv);
  }
  return elite_memory(model, config, compute, true);
}

std::vector<EliteCandidate> elite_candidates(const ModelConfig& model, double share, std::size_t count) {
  constexpr double kRotated = 0.3;
  const EliteShape shape = shape_of(model);
  const std::size_t full = 2 * shape.kv_heads * shape.head_dim,
                    step = std::max<std::size_t>(2, standard_rank_step(shape) / 2);
  const std::size_t values = static_cast<std::size_t>(std::floor(share * static_cast<double>(full))) / step * step;
  if (values == 0) return {};
  auto sizes = elite_allocations(shape, static_cast<double>(values) / static_cast<double>(full), true, step);
  std::ranges::stable_sort(sizes, {}, [&](const EliteAllocation& size) {
    return std::abs(static_cast<double>(values - size.d_ckv) - kRotated * static_cast<double>(values));
  });
  sizes.resize(std::min(sizes.size(), count));
  std::ranges::sort(sizes, {}, &EliteAllocation::r);
  std::vector<EliteCandidate> candidates;
  candidates.reserve(sizes.size());
  for (const EliteAllocation& size : sizes) candidates.push_back({size, true});
  return candidates;
}

}  // namespace kvs::inline calibrate
