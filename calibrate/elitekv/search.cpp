// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/search.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "io/record.h"
#include "states/second_moment_source.h"

namespace kvs::inline calibrate {
namespace {

Json picks_json(const std::vector<std::vector<ElitePicks>>& picks) {
  Json layers = Json::array();
  for (const auto& heads : picks) {
    Json& row = layers.emplace_back(Json::array());
    for (const ElitePicks& head : heads) row.push_back({{"chunks", head.chunks}, {"errors", head.errors}});
  }
  return layers;
}

/// Reads [layer][head] as picks_json() writes them, equally many chunks each, all below `chunks`. @throws Error kInput
std::vector<std::vector<ElitePicks>> picks_from(const JsonCursor& layers, std::size_t chunks) {
  std::vector<std::vector<ElitePicks>> picks;
  std::optional<std::size_t> count, rows;
  for (std::size_t n = 0; n < layers.array_size(); ++n) {
    const JsonCursor row = layers.at(n);
    if (row.array_size() == 0 || row.array_size() != rows.value_or(row.array_size()))
      row.fail("as many heads as of the first layer");
    rows = row.array_size();
    auto& heads = picks.emplace_back();
    for (std::size_t h = 0; h < *rows; ++h) {
      const JsonCursor head = row.at(h);
      ElitePicks& of = heads.emplace_back();
      for (std::size_t pick = 0; pick < head.at("chunks").array_size(); ++pick)
        of.chunks.push_back(record_size(head.at("chunks").at(pick), 0, chunks - 1));
      if (of.chunks.size() != count.value_or(of.chunks.size())) head.fail("as many chunks as of the first head");
      count = of.chunks.size();
      of.errors = record_reals(head.at("errors"), head.at("errors").array_size());
    }
  }
  if (picks.empty()) layers.fail("the picks of each layer");
  return picks;
}

}  // namespace

EliteSearch::EliteSearch(EliteSearchPlan plan, CalibrationOps& ops, StateSource& source, StateSource& repeated)
    : plan_(std::move(plan)),
      ops_(&ops),
      source_(&source),
      repeated_(&repeated),
      needs_statistics_(plan_.norm == 2 || plan_.d_model > 0 || plan_.baseline == EliteBaseline::kContribution),
      statistics_(plan_.rules.empty() ? plan_.geometry : EliteGeometry{},
                  plan_.baseline == EliteBaseline::kContribution),
      moments_(plan_.rules.empty() ? plan_.geometry.layers.size() * plan_.d_model * plan_.d_model : 0) {
  if (!plan_.rules.empty()) attention_.emplace(plan_.geometry, plan_.rules, plan_.d_model);
  if (!needs_statistics_) start_distance();
}

std::size_t EliteSearch::units() const noexcept {
  const std::size_t passes = (needs_statistics_ ? 1 : 0) + (plan_.norm == 1 ? plan_.count : 0);
  return passes * source_->documents();
}

void EliteSearch::begin_pass() { begun_ = distance_; }

std::size_t EliteSearch::together() {
  std::size_t bytes = 0;
  for (const std::span<const double> sum : sums()) bytes += sum.size_bytes();
  return (begun_ ? repeated_ : source_)->visits_together(bytes);
}

std::vector<std::vector<double>> EliteSearch::measure(std::size_t unit) {
  const std::size_t document = unit % source_->documents();
  if (!begun_) return measure_statistics(document);
  DistanceSearch one = *begun_;
  std::ranges::fill(one.sums(), 0.0);
  one.add(*ops_, *repeated_, document);
  return {{one.sums().begin(), one.sums().end()}};
}

std::vector<std::vector<double>> EliteSearch::measure_statistics(std::size_t document) {
  if (attention_) {
    AttentionStatistics sums(plan_.geometry, plan_.rules, plan_.d_model);
    sums.add(*ops_, *source_, document);
    return {std::move(sums.pairs), std::move(sums.moments)};
  }
  RopeStatistics sums(plan_.geometry, plan_.baseline == EliteBaseline::kContribution);
  std::vector<double> moments(moments_.size());
  if (moments.empty()) {
    sums.add(*ops_, *source_, document);
  } else {
    SecondMomentSource tap(*source_, *ops_, plan_.geometry.layers, plan_.d_model, moments);
    sums.add(*ops_, tap, document);
  }
  return {std::move(sums.gram), std::move(sums.query_norms), std::move(sums.key_norms), std::move(moments)};
}

void EliteSearch::add(std::span<const std::vector<double>> sums) {
  const auto add_to = [](std::span<double> to, std::span<const double> from) {
    if (to.size() != from.size())
      throw Error(ErrorCode::kInternal, "elite search", "a document's sums are of another size");
    std::ranges::transform(to, from, to.begin(), std::plus());
  };
  const std::size_t documents = source_->documents(), document = done_ % documents;
  if (distance_) {
    add_to(distance_->sums(), sums.front());
    if (document + 1 == documents) distance_->finish_pass();
  } else {
    const auto to = attention_
                        ? std::vector{&attention_->pairs, &attention_->moments}
                        : std::vector{&statistics_.gram, &statistics_.query_norms, &statistics_.key_norms, &moments_};
    for (std::size_t n = 0; n < to.size(); ++n) add_to(*to[n], sums[n]);
    if (!attention_) statistics_.tokens += static_cast<double>(source_->tokens());
    if (document + 1 == documents && plan_.norm == 1) start_distance();
  }
  ++done_;
}

void EliteSearch::start_distance() {
  if (!plan_.baseline) {
    distance_.emplace(plan_.geometry, plan_.granularity, plan_.count);
    return;
  }
  std::vector<std::vector<std::vector<std::size_t>>> orders;
  for (std::size_t layer = 0; layer < plan_.geometry.layers.size(); ++layer) {
    auto& heads = orders.emplace_back();
    for (const ElitePicks& head : layer_picks(layer, plan_.count)) heads.push_back(head.chunks);
  }
  distance_.emplace(plan_.geometry, plan_.granularity, std::move(orders));
}

std::vector<ElitePicks> EliteSearch::layer_picks(std::size_t layer, std::size_t count) const {
  const std::size_t heads = plan_.geometry.heads(plan_.granularity), chunks = plan_.geometry.chunks;
  const std::vector<double> grams =
      attention_ ? attention_->grams(layer, plan_.granularity) : statistics_.grams(layer, plan_.granularity);
  if (plan_.disjoint) return pick_disjoint({grams, {heads, chunks, chunks}}, count);
  const bool by_contribution = plan_.baseline == EliteBaseline::kContribution;
  const auto scores = by_contribution ? statistics_.contributions(layer, plan_.granularity) : std::vector<double>();
  std::vector<ElitePicks> picks;
  for (std::size_t head = 0; head < heads; ++head) {
    const TensorView<const double, 2> gram(
        std::span<const double>(grams).subspan(head * chunks * chunks, chunks * chunks), {chunks, chunks});
    if (!plan_.baseline) {
      picks.push_back(pick_elite(gram, count));
      continue;
    }
    const auto own =
        std::span<const double>(scores).subspan(by_contribution ? head * chunks : 0, by_contribution ? chunks : 0);
    picks.push_back(errors_of(gram, baseline_chunks(*plan_.baseline, chunks, count, own)));
  }
  return picks;
}

std::vector<std::span<const double>> EliteSearch::sums() {
  const std::span<const double> none;
  return {statistics_.gram,
          statistics_.query_norms,
          statistics_.key_norms,
          moments_,
          attention_ ? attention_->pairs : none,
          attention_ ? attention_->moments : none,
          distance_ ? distance_->sums() : none};
}

Json EliteSearch::extra() const { return distance_ ? picks_json(distance_->picks()) : Json(); }

void EliteSearch::restore(const Checkpoint::State& state) {
  std::vector<double> none;
  std::vector<double>* targets[] = {&statistics_.gram,
                                    &statistics_.query_norms,
                                    &statistics_.key_norms,
                                    &moments_,
                                    attention_ ? &attention_->pairs : &none,
                                    attention_ ? &attention_->moments : &none};
  for (std::size_t n = 0; n < std::size(targets); ++n) {
    if (state.sums.size() != std::size(targets) + 1 || state.sums[n].size() != targets[n]->size())
      throw Error(ErrorCode::kInput, "checkpoint", "found sums of another size, expected those of this search");
    *targets[n] = state.sums[n];
  }
  done_ = state.documents;
  if (needs_statistics_)
    statistics_.tokens = static_cast<double>(std::min(done_, source_->documents()) * source_->tokens());
  if (state.extra.is_null()) return;
  if (!distance_) start_distance();
  distance_->restore(picks_from(JsonCursor(state.extra, "checkpoint"), plan_.geometry.chunks), state.sums.back());
}

std::vector<std::vector<ElitePicks>> EliteSearch::picks(std::size_t count) const {
  if (distance_) return distance_->picks();
  std::vector<std::vector<ElitePicks>> picks;
  for (std::size_t layer = 0; layer < plan_.geometry.layers.size(); ++layer) picks.push_back(layer_picks(layer, count));
  return picks;
}

double distance_flops(const EliteSearchPlan& plan, double documents, double tokens) noexcept {
  constexpr double kPerPairAndChunk = 60;  // measured on the CPU: sine-cosine products and a sum of magnitudes
  if (plan.norm != 1) return 0;
  const auto cells =
      static_cast<double>(plan.geometry.layers.size() * plan.geometry.query_heads * plan.geometry.chunks);
  return documents * static_cast<double>(plan.count) * cells * tokens * tokens / 2 * kPerPairAndChunk;
}

}  // namespace kvs::inline calibrate
