// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/attention_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/interrupt.h"
#include "states/second_moment_source.h"

namespace kvs::inline calibrate {
namespace {

/// sum += Σ_j w_j x_j x_jᵀ.
void add_moment(CalibrationOps& ops, Backend& backend, const Operand& x, std::span<const double> weights,
                std::span<double> sum) {
  const std::size_t columns = x.columns;
  std::vector<float> rows = download(backend, x);
  for (std::size_t n = 0; n < rows.size(); ++n) rows[n] *= static_cast<float>(std::sqrt(weights[n / columns]));
  add_second_moment(ops, backend, rows, columns, sum);
}

}  // namespace

AttentionStatistics::AttentionStatistics(EliteGeometry shape, std::vector<ScoreRule> rules, std::size_t d_model)
    : geometry(std::move(shape)), rules_(std::move(rules)), d_model_(d_model) {
  const std::size_t size = AttentionPairs::features(geometry.chunks);
  pairs.resize(geometry.layers.size() * geometry.query_heads * size * size);
  moments.resize(geometry.layers.size() * d_model * d_model);
}

void AttentionStatistics::add(CalibrationOps& ops, StateSource& source, std::size_t document) {
  const std::size_t heads = geometry.query_heads, size = AttentionPairs::features(geometry.chunks),
                    of_layer = heads * size * size;
  const StateNeeds needs{.layers = geometry.layers, .states = {StateKind::kQPre, StateKind::kKPre}, .x = d_model_ > 0};
  source.visit(document, needs, [&](const DocumentStates& states) {
    check_interrupt();
    const auto layer =
        static_cast<std::size_t>(std::ranges::find(geometry.layers, states.layer) - geometry.layers.begin());
    std::vector<double> mass(source.tokens());
    AttentionPairs::add(source.backend(), states, source.rope(states.layer), rules_[layer],
                        {std::span(pairs).subspan(layer * of_layer, of_layer), {heads, size, size}}, mass);
    if (d_model_ == 0) return;
    for (double& value : mass) value /= static_cast<double>(heads);
    const std::size_t moment = d_model_ * d_model_;
    add_moment(ops, source.backend(), states.x, mass, std::span(moments).subspan(layer * moment, moment));
  });
}

TensorView<const double, 2> AttentionStatistics::pairs_of(std::size_t layer, std::size_t query_head) const {
  const std::size_t size = AttentionPairs::features(geometry.chunks);
  return {
      std::span<const double>(pairs).subspan((layer * geometry.query_heads + query_head) * size * size, size * size),
      {size, size}};
}

std::vector<double> AttentionStatistics::grams(std::size_t layer, Granularity granularity) const {
  const std::size_t chunks = geometry.chunks, heads = geometry.heads(granularity);
  std::vector<double> result(heads * chunks * chunks);
  for (std::size_t query = 0; query < geometry.query_heads; ++query) {
    const TensorView<const double, 2> pair = pairs_of(layer, query);
    const TensorView<double, 2> to(
        std::span<double>(result).subspan(query * heads / geometry.query_heads * chunks * chunks, chunks * chunks),
        {chunks, chunks});
    for (std::size_t a = 0; a < chunks; ++a)
      for (std::size_t b = 0; b < chunks; ++b)
        to(a, b) += pair(a, b) - pair(a, chunks + b) - pair(chunks + a, b) + pair(chunks + a, chunks + b);
  }
  return result;
}

}  // namespace kvs::inline calibrate
