// SPDX-License-Identifier: Apache-2.0
#include "calibrate/triattention/query_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvs::inline calibrate {
namespace {

/// Adds Σ q and Σ |q_f| over a document's tokens of one head.
/// @param rows  [token, head_dim];  @param sum  [head_dim];  @param magnitude  [band]
void add_queries(std::span<const float> rows, std::size_t chunks, std::span<double> sum, std::span<double> magnitude) {
  const std::size_t head_dim = sum.size();
  std::vector<double> of_document(head_dim + magnitude.size());
  for (std::size_t first = 0; first < rows.size(); first += head_dim) {
    const float* const q = rows.data() + first;
    for (std::size_t channel = 0; channel < head_dim; ++channel) of_document[channel] += double{q[channel]};
    for (std::size_t band = 0; band < magnitude.size(); ++band) {
      const double other = double{q[band + chunks]};
      of_document[head_dim + band] +=
          band < chunks ? std::sqrt(double{q[band]} * double{q[band]} + other * other) : std::abs(other);
    }
  }
  for (std::size_t channel = 0; channel < head_dim; ++channel) sum[channel] += of_document[channel];
  for (std::size_t band = 0; band < magnitude.size(); ++band) magnitude[band] += of_document[head_dim + band];
}

}  // namespace

QuerySums::QuerySums(const ModelConfig& model) {
  const std::vector<std::size_t> cached = model.cached_layers();
  layers_.reserve(cached.size());
  sums_.reserve(cached.size());
  for (const std::size_t layer : cached) {
    const AttentionConfig& attention = model.layer[layer].attention;
    layers_.push_back({.layer = layer,
                       .query_heads = attention.query_heads,
                       .head_dim = attention.head_dim,
                       .chunks = model.ropes.empty() ? 0 : model.rotary_dim(layer) / 2});
    const QueryStatistics& one = layers_.back();
    sums_.emplace_back(one.query_heads * (one.head_dim + one.bands()) + 1);
  }
}

void QuerySums::add(StateSource& source, std::size_t document) {
  StateNeeds needs{.layers = {}, .states = {StateKind::kQPre}};
  needs.layers.reserve(layers_.size());
  for (const QueryStatistics& one : layers_) needs.layers.push_back(one.layer);
  source.visit(document, needs, [&](const DocumentStates& states) {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(layers_, states.layer, &QueryStatistics::layer) - layers_.begin());
    const QueryStatistics& one = layers_[at];
    const std::vector<float> q = download(source.backend(), states[StateKind::kQPre]);
    const std::span<double> sums(sums_[at]);
    const std::size_t channels = one.query_heads * one.head_dim, of_head = q.size() / one.query_heads;
    for (std::size_t head = 0; head < one.query_heads; ++head)
      add_queries(std::span(q).subspan(head * of_head, of_head), one.chunks,
                  sums.subspan(head * one.head_dim, one.head_dim),
                  sums.subspan(channels + head * one.bands(), one.bands()));
    sums.back() += static_cast<double>(of_head / one.head_dim);
  });
}

std::vector<QueryStatistics> QuerySums::statistics() const {
  std::vector<QueryStatistics> found = layers_;
  for (std::size_t n = 0; n < found.size(); ++n) {
    const std::vector<double>& sums = sums_[n];
    const std::size_t channels = found[n].query_heads * found[n].head_dim;
    for (std::size_t at = 0; at + 1 < sums.size(); ++at)
      (at < channels ? found[n].mean : found[n].magnitude).push_back(static_cast<float>(sums[at] / sums.back()));
  }
  return found;
}

std::vector<std::span<const double>> QuerySums::state() const { return {sums_.begin(), sums_.end()}; }

}  // namespace kvs::inline calibrate
