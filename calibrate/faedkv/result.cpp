// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/result.h"

#include <cmath>

#include "io/finite.h"

namespace kvs::inline calibrate {
namespace {

std::vector<std::size_t> open_in(const ChunkRace& race) {
  std::vector<std::size_t> chunks;
  for (std::size_t chunk = 0; chunk < race.verdict.size(); ++chunk)
    if (race.verdict[chunk] == ChunkVerdict::kOpen) chunks.push_back(chunk);
  return chunks;
}

std::string key_space(const AblationPlan& plan) { return plan.setup.before_rope ? "k_pre" : "k_post"; }

AblationResult result_of(const AblationPlan& plan, const AblationSums& sums) {
  AblationResult result = ablation_result(sums);
  result.protocol = plan.setup.continuation ? "continuation" : "in-place";
  result.key_space = key_space(plan);
  result.chunks = plan.grid.chunks;
  result.layers = plan.layers;
  result.ppl_base = if_finite(std::exp(result.nll_base));
  if (!plan.race) return result;
  result.documents = ablated_documents(sums);
  result.confidence = plan.race->confidence;
  result.undecided.emplace();
  for (const ChunkRace& race : judge_layers(plan, sums)) result.undecided->push_back(open_in(race));
  return result;
}

FaedkvQuality quality_of(const AblationPlan& plan, double nll_full, const std::vector<PerplexitySum>& kept) {
  std::vector<FaedkvQuality::Point> sweep;
  for (std::size_t n = 0; n < kept.size(); ++n)
    sweep.push_back({plan.chunk_counts[n], if_finite(kept[n].perplexity()), kept[n].mean(), kept[n].error()});
  FaedkvQuality quality{.ppl_full = if_finite(std::exp(nll_full)),
                        .nll_full = nll_full,
                        .ppl = if_finite(std::exp(kept.front().mean())),
                        .nll_mean = sweep.front().nll_mean,
                        .nll_error = sweep.front().nll_error,
                        .keep = plan.keep,
                        .sweep = {}};
  if (sweep.size() > 1) quality.sweep = std::move(sweep);
  return quality;
}

}  // namespace

FaedkvResult faedkv_result(const FaedkvPlan& plan, const AblationTable& table, const KeptLosses& losses) {
  const AblationSums sums = table.sums(plan.grid.chunks);
  FaedkvResult found{.ablation = result_of(plan, sums),
                     .quality = {},
                     .kept = choose_chunks(plan, sums),
                     .passes = table.passes(),
                     .full_passes = plan.variants() * sums.base.size()};
  found.quality = quality_of(plan, found.ablation.nll_base, losses.kept);
  if (sums.base.size() == 1) found.ablation.nll_error = losses.base_error;
  return found;
}

Json faedkv_parameters(const FaedkvPlan& plan, const FaedkvResult& found) {
  return {{"layers", plan.layers},
          {"prefix", plan.setup.prefix},
          {"sinks", plan.sinks},
          {"recent", plan.recent},
          {"chunks", plan.grid.chunks},
          {"kept", found.kept},
          {"transform", plan.setup.transform == Transform::kDct ? "dct" : "dft"},
          {"spectrum", plan.grid.full_spectrum ? "full" : "half"},
          {"key_space", key_space(plan)},
          {"update", "corrected"},
          {"age", "off"}};
}

}  // namespace kvs::inline calibrate
