// SPDX-License-Identifier: Apache-2.0
#include "analyzers/retention.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "eval/paired_difference.h"
#include "io/finite.h"
#include "io/record.h"
#include "model/work.h"
#include "turns/turns.h"

namespace kvs::inline analyzers {
namespace {

/// Returns the bins or chunks that are kept in a layer, ascending.
std::vector<std::size_t> kept_units(const RetentionPlan& plan, KeptBand band, double share, std::size_t layer) {
  const std::size_t count = plan.kept(share);
  if (band == KeptBand::kBest) return most_important(plan.chunks->delta[layer], count);
  std::vector<std::size_t> units(count);
  std::iota(units.begin(), units.end(), band == KeptBand::kLow ? 0 : plan.units() - count);
  return units;
}

std::vector<double> gains_of(const RetentionPlan& plan, KeptBand band, double share, std::size_t layer) {
  const std::vector<std::size_t> kept = kept_units(plan, band, share, layer);
  if (plan.chunks) return gains_keeping(plan.chunks->grid, kept);
  std::vector<double> gains(plan.units(), 0.0);
  for (const std::size_t bin : kept) gains[bin] = 1;
  return gains;
}

/// Returns the gains of all variants: [(band, states, share), (keys, values), layer, bin].
std::vector<double> all_gains(const RetentionPlan& plan) {
  const std::vector<double> ones(plan.layers.size() * bins_of(plan.setup.transform, plan.setup.filtered()), 1.0);
  std::vector<double> gains;
  for (const KeptBand band : plan.bands())
    for (const CutStates states : kCutStates)
      for (const double share : plan.shares) {
        std::vector<double> cut;
        for (std::size_t layer = 0; layer < plan.layers.size(); ++layer)
          std::ranges::copy(gains_of(plan, band, share, layer), std::back_inserter(cut));
        for (const CutStates whole : {CutStates::kValues, CutStates::kKeys})
          std::ranges::copy(states == whole ? ones : cut, std::back_inserter(gains));
      }
  return gains;
}

void add_document(Retention& result, const JsonCursor& record, const RetentionPlan& plan) {
  const std::size_t scored = plan.setup.scored();
  result.full.add(record_nll(record.at("full"), scored), scored);
  (void)record_reals(record.at("kept"), plan.variants());
  std::size_t n = 0;
  for (RetentionCurve& curve : result.curves)
    for (PerplexitySum& point : curve.points) point.add(record_nll(record.at("kept").at(n++), scored), scored);
}

/// Interval of perplexity relative to the unchanged model's, over documents.
PairedDifference difference_of(const PerplexitySum& point, const PerplexitySum& full) {
  const double scored = static_cast<double>(full.scored) / static_cast<double>(full.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < full.per_document.size(); ++n)
    differences.push_back((point.per_document[n] - full.per_document[n]) / scored);
  return paired_difference(differences);
}

RetentionResult::Curve curve_of(const RetentionCurve& sums, const PerplexitySum& full) {
  RetentionResult::Curve curve{.band = sums.band, .states = sums.states, .nll_mean = std::vector<double>()};
  for (const PerplexitySum& point : sums.points) {
    curve.ppl.push_back(if_finite(point.perplexity()));
    curve.nll_mean->push_back(point.mean());
    curve.ratio.push_back(if_normal_exponential(point.mean() - full.mean()));
    auto& interval = curve.interval.emplace_back(difference_of(point, full).interval);
    if (interval) interval = {1 + interval->first, 1 + interval->second};
  }
  return curve;
}

}  // namespace

std::size_t RetentionPlan::units() const noexcept {
  return chunks ? chunks->grid.chunks : bins_of(setup.transform, setup.filtered());
}

std::vector<KeptBand> RetentionPlan::bands() const {
  if (chunks) return {KeptBand::kLow, KeptBand::kHigh, KeptBand::kBest};
  return {KeptBand::kLow, KeptBand::kHigh};
}

Retention retain(AblationForward& forward, const RetentionPlan& plan,
                 std::span<const std::vector<std::int32_t>> documents, Journal& journal,
                 const std::function<void(std::size_t)>& done) {
  Retention result;
  for (const KeptBand band : plan.bands())
    for (const CutStates states : kCutStates)
      result.curves.push_back({band, states, std::vector<PerplexitySum>(plan.shares.size())});
  const std::vector<double> gains = all_gains(plan);
  const std::array<std::size_t, 4> shape{plan.variants(), 2, plan.layers.size(),
                                         gains.size() / (plan.variants() * 2 * plan.layers.size())};
  const std::size_t known = std::min(journal.records().size(), documents.size());
  for (std::size_t n = 0; n < known; ++n) {
    add_document(result, journal.record(n), plan);
    done(n + 1);
  }
  std::vector<Json> records(documents.size());
  const auto measure = [&](std::size_t n) {
    AblationForward passes = forward.another();
    passes.begin(documents[n]);
    const double full = passes.base();
    records[n] = {{"full", full}, {"kept", passes.filtered(plan.layers, {gains, shape})}};
  };
  run_in_groups(known, documents.size(), forward.together(), measure, [&](std::size_t n) {
    journal.append(records[n]);
    add_document(result, JsonCursor(records[n], "document"), plan);
    done(n + 1);
  });
  return result;
}

RetentionResult retention_result(RetentionResult result, const RetentionPlan& plan, const Retention& retention) {
  const AblationSetup& setup = plan.setup;
  result.protocol = setup.continuation ? "continuation" : "in-place";
  result.transform = setup.transform == Transform::kDct ? "dct" : "dft";
  result.key_space = setup.before_rope ? "k_pre" : "k_post";
  result.sinks = setup.sinks;
  result.recent = setup.recent;
  result.layers = plan.layers;
  result.unit = plan.chunks ? "chunk" : "bin";
  result.units = plan.units();
  result.shares = plan.shares;
  for (const double share : plan.shares) result.kept.push_back(plan.kept(share));
  result.scored_per_document = setup.scored();
  result.ppl_full = if_finite(retention.full.perplexity());
  result.nll_full = retention.full.mean();
  result.nll_full_error = retention.full.error();
  for (const RetentionCurve& curve : retention.curves) result.curves.push_back(curve_of(curve, retention.full));
  if (setup.continuation) result.prefix = setup.prefix;
  return result;
}

double retention_flops(const RetentionPlan& plan, const ModelConfig& model, std::size_t documents) {
  const auto tokens = static_cast<double>(plan.setup.tokens), past = static_cast<double>(plan.setup.first_scored());
  const double variant =
      static_cast<double>(model.layers()) * layer_flops(model, tokens - past, past) + head_flops(model, tokens - past);
  return static_cast<double>(documents) *
         (forward_flops(model, tokens) + static_cast<double>(plan.variants()) * variant);
}

}  // namespace kvs::inline analyzers
