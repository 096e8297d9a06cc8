// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost/cost.h"

#include <array>
#include <set>

#include "calibrate/elitekv/elite_allocation.h"
#include "calibrate/elitekv/jlrd.h"
#include "model/model_json.h"
#include "model/work.h"

namespace kvs::inline calibrate {
namespace {

CostResult::Freqkv freqkv_cost(const ModelConfig& model, const CostPlan& plan) {
  constexpr double kTera = 1e12;
  const SlotOptions half{.cache_size = plan.cache_size, .gamma = 0.5};
  CostResult::Freqkv cost{half.cache_size, half.sinks, half.gamma, {0.25, 0.5, 0.75}, {}};
  for (const std::size_t tokens : plan.tokens) {
    const auto length = static_cast<double>(tokens);
    const double dropping = prefill_flops(model, tokens, attention_pairs(half, tokens)) / kTera;
    const double transforms = transform_flops(model, half, tokens) / kTera;
    auto& row = cost.rows.emplace_back(CostResult::Freqkv::Row{tokens,
                                                               prefill_flops(model, tokens, length * length) / kTera,
                                                               dropping,
                                                               dropping + transforms,
                                                               transforms,
                                                               {}});
    for (const double gamma : cost.gammas)
      row.compressions.push_back(compressions({.cache_size = plan.cache_size, .gamma = gamma}, tokens));
  }
  return cost;
}

CostResult::Lagkv lagkv_cost(const CostPlan& plan) {
  CostResult::Lagkv cost{16, {0.5, 0.25, 0.125}, {}};
  for (const std::size_t tokens : plan.tokens)
    for (const std::size_t lag : plan.lags) {
      auto& row = cost.rows.emplace_back(CostResult::Lagkv::Row{tokens, lag, {}});
      for (const double ratio : cost.ratios) row.held.push_back(lagkv_tokens(tokens, cost.sinks, lag, ratio));
    }
  return cost;
}

/// Empty for a model whose layers have several sizes.
CostResult::Elitekv elitekv_cost(const ModelConfig& model) {
  if (!model.has_equal_layers()) return {};
  const EliteShape shape{model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
  CostResult::Elitekv cost{2 * model.kv_heads() * model.head_dim(), {}, {}};
  for (const double ratio : {0.5, 0.34375, 0.28125, 0.25, 0.21875, 0.125}) {
    auto& row = cost.rows.emplace_back(CostResult::Elitekv::Row{ratio, 0, {}});
    for (const auto& [r, d_ckv] : elite_allocations(shape, ratio, false)) row.pairs.emplace_back(r, d_ckv);
    row.count = row.pairs.size();
  }
  for (const std::size_t r : std::set{shape.chunks / 4, 3 * shape.chunks / 8, shape.chunks / 2, shape.chunks})
    cost.bounds.push_back({r, no_extra_parameters_rank(model.d_model, model.kv_heads(), model.head_dim(), r)});
  return cost;
}

CostResult::Faedkv faedkv_cost(const CostPlan& plan) {
  const SpectrumSize spectrum;
  CostResult::Faedkv cost{spectrum.sinks, spectrum.recent, spectrum.chunks, {0.5, 0.25, 0.125}, {}};
  for (const std::size_t tokens : plan.tokens) {
    if (tokens <= spectrum.sinks + spectrum.recent) continue;
    auto& row = cost.rows.emplace_back(CostResult::Faedkv::Row{tokens, spectrum.kept_bins(tokens, 1), {}, {}});
    for (const double share : cost.shares) {
      row.kept_bins.push_back(spectrum.kept_bins(tokens, share));
      row.bytes_ratio.push_back(static_cast<double>(spectrum.size(tokens, share)) / static_cast<double>(tokens));
    }
  }
  return cost;
}

}  // namespace

CostResult cost_result(const ModelConfig& model, const CostPlan& plan) {
  constexpr std::size_t kBytesPerValue = 2;
  return {.geometry = {model.name, model.layers(), model.d_model, model.d_ff(),
                       sizes_of(model, &AttentionConfig::query_heads), sizes_of(model, &AttentionConfig::kv_heads),
                       sizes_of(model, &AttentionConfig::head_dim), model.vocabulary},
          .products_per_token = products_per_token(model),
          .bytes_per_token = kBytesPerValue * model.cache_values_per_token(),
          .freqkv = freqkv_cost(model, plan),
          .lagkv = lagkv_cost(plan),
          .elitekv = elitekv_cost(model),
          .faedkv = faedkv_cost(plan)};
}

}  // namespace kvs::inline calibrate
