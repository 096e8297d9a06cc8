// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/factors.h"

#include <algorithm>

#include "calibrate/common/output_weights.h"
#include "calibrate/common/whitening.h"
#include "calibrate/elitekv/query_turns.h"

namespace kvs::inline calibrate {
namespace {

/// The rows that a layer's factors replace, and the weights of their errors.
struct FactorRows {
  std::vector<double> keys, values;  // [rows, d_model]
  std::vector<double> input_factor;  // Weighting::inputs
  OutputWeights outputs;             // empty except for Whitening::kBoth
};

AttentionMaps attention_maps(const ModelSource& source, std::size_t layer) {
  const ModelConfig& model = source.config();
  return {model.query_heads(),
          model.kv_heads(),
          model.head_dim(),
          model.d_model,
          model.score_scale(),
          source.projection(layer, 'q'),
          source.projection(layer, 'v'),
          source.projection(layer, 'o'),
          source.projection_bias(layer, 'q')};
}

/// Rotates the queries of `maps` to compensate for the missing rotation.
void fit_queries(const EliteConfig& config, std::size_t n, const AttentionStatistics& attention, AttentionMaps& maps) {
  const std::size_t size = maps.head_dim * maps.d_model;
  for (std::size_t head = 0; head < maps.query_heads; ++head) {
    const auto turns = query_turns(attention.pairs_of(n, head), config.picks[n][head / maps.group()].chunks);
    turn_rows(turns, std::span(maps.query).subspan(head * size, size), maps.d_model);
    if (!maps.query_bias.empty())
      turn_rows(turns, std::span(maps.query_bias).subspan(head * maps.head_dim, maps.head_dim), 1);
  }
}

/// Returns the channels of a key that are not elite, ascending.
std::vector<std::size_t> unrotated_channels(const std::vector<std::size_t>& elite, const ModelConfig& model) {
  std::vector<std::size_t> channels;
  for (std::size_t channel = 0; channel < model.head_dim(); ++channel)
    if (channel >= model.rotary_dim() || std::ranges::find(elite, channel % model.chunks()) == elite.end())
      channels.push_back(channel);
  return channels;
}

FactorRows factor_rows(const FactorInput& input, std::size_t n, const AttentionMaps& maps, const EliteConfig& config) {
  const ModelConfig& model = input.source.config();
  std::vector<std::vector<std::size_t>> elite, channels;
  for (const ElitePicks& head : config.picks[n]) {
    elite.push_back(head.chunks);
    channels.push_back(unrotated_channels(head.chunks, model));
  }
  FactorRows rows;
  rows.keys = unrotated_rows(input.source.projection(config.layers[n], 'k'), elite, model.head_dim(),
                             model.rotary_dim(), model.d_model);
  rows.values.assign(maps.value.begin(), maps.value.end());
  if (config.whitening == Whitening::kOff) return rows;
  rows.input_factor = whitening_factor(input.ops, input.second_moment(n), input.tokens);
  if (config.whitening == Whitening::kBoth) rows.outputs = output_weights(input.ops, maps, channels, rows.input_factor);
  return rows;
}

/// Returns the layer's maps, with the queries that its cache will use.
AttentionMaps read_maps(const FactorInput& input, std::size_t n, const EliteConfig& config) {
  AttentionMaps maps = attention_maps(input.source, config.layers[n]);
  if (config.fitted_queries) fit_queries(config, n, *input.attention, maps);
  return maps;
}

LowRankFactors factors_of(const FactorInput& input, const EliteConfig& config, const FactorRows& rows,
                          const std::vector<double>& matrix, std::size_t rank,
                          std::vector<std::vector<double>> outputs) {
  return factorise(input.ops, matrix, input.source.config().d_model, rank, config.split,
                   {rows.input_factor, std::move(outputs)});
}

template <class T>
std::vector<T> joined(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void add_shared_ranks(const FactorInput& input, std::size_t n, EliteConfig& config) {
  const FactorRows rows = factor_rows(input, n, read_maps(input, n, config), config);
  EliteSingularValues singular{{},
                               factors_of(input, config, rows, rows.keys, 0, rows.outputs.keys).singular,
                               factors_of(input, config, rows, rows.values, 0, rows.outputs.values).singular};
  config.ranks.push_back(shared_ranks(singular.k, singular.v, config.size_of(n).d_ckv));
  config.singular_values.push_back(std::move(singular));
}

std::vector<FactorTensor> planned_factors(const ModelSource& source, std::size_t n, const EliteConfig& config) {
  const ModelConfig& model = source.config();
  const std::size_t layer = config.layers[n], queries = model.query_heads() * model.head_dim();
  std::vector<FactorTensor> tensors;
  if (config.fitted_queries) {
    const EliteQueries names = elite_queries(layer);
    tensors.push_back({names.weight, {queries, model.d_model}, {}});
    if (!source.projection_bias(layer, 'q').empty()) tensors.push_back({names.bias, {queries}, {}});
  }
  for (const EliteFactor& factor : elite_factors(config, n, model.kv_heads(), model.head_dim())) {
    tensors.push_back({factor.down, {factor.rank, model.d_model}, {}});
    tensors.push_back({factor.up, {factor.rows, factor.rank}, {}});
  }
  return tensors;
}

std::vector<FactorTensor> factorise_layer(const FactorInput& input, std::size_t n, EliteConfig& config) {
  AttentionMaps maps = read_maps(input, n, config);
  const FactorRows rows = factor_rows(input, n, maps, config);
  std::vector<LowRankFactors> pairs;
  if (config.joint) {
    pairs.push_back(factors_of(input, config, rows, joined(rows.keys, rows.values), config.size_of(n).d_ckv,
                               joined(rows.outputs.keys, rows.outputs.values)));
    config.singular_values.push_back({pairs.front().singular, {}, {}});
  } else {
    const auto [keys, values] = config.ranks[n];
    pairs.push_back(factors_of(input, config, rows, rows.keys, keys, rows.outputs.keys));
    pairs.push_back(factors_of(input, config, rows, rows.values, values, rows.outputs.values));
  }
  std::vector<FactorTensor> tensors = planned_factors(input.source, n, config);
  auto next = tensors.begin();
  if (config.fitted_queries) {
    next++->values = std::move(maps.query);
    if (!maps.query_bias.empty()) next++->values = std::move(maps.query_bias);
  }
  for (LowRankFactors& factors : pairs) {
    next++->values = std::move(factors.down);
    next++->values = std::move(factors.up);
  }
  return tensors;
}

std::size_t full_rank(const ModelConfig& model, std::size_t r, bool joint) noexcept {
  const std::size_t keys = model.kv_heads() * (model.head_dim() - 2 * r), values = model.kv_heads() * model.head_dim();
  return joint ? std::min(model.d_model, keys + values)
               : std::min(model.d_model, keys) + std::min(model.d_model, values);
}

}  // namespace kvs::inline calibrate
