// SPDX-License-Identifier: Apache-2.0
#include "analyzers/model_gain.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace kvs::inline analyzers {
namespace {

/// Returns the mean of `value` over layers, minus the value that white noise would show.
double mean_over_layers(const ModelGains& gains, double optimistic,
                        const std::function<double(const LayerGains&)>& value) {
  double sum = 0;
  for (const LayerGains& layer : gains.removed) sum += value(layer);
  return std::max(0.0, sum / static_cast<double>(gains.removed.size()) - optimistic);
}

}  // namespace

ModelGains model_gains(const MomentSource& source, std::size_t documents,
                       const std::function<GainWeights(std::size_t)>& weights) {
  const MomentShape& shape = source.shape();
  ModelGains gains{.shape = shape, .tokens = documents * shape.counted(), .removed = {}, .kept = {}, .left_out = {}};
  const auto too_few = [&](const std::string& what, std::size_t width) {
    if (gains.tokens >= 2 * width) return false;
    gains.left_out.push_back(what + ": found " + std::to_string(gains.tokens) + " tokens, expected at least " +
                             std::to_string(2 * width) + ", two for each of its channels");
    return true;
  };
  if (too_few("everything", shape.head_dim)) return gains;
  const std::size_t width = shape.kv_heads * shape.head_dim, whole = shape.whole_heads() * shape.head_dim;
  if (whole > 0) too_few("the KLT of a layer", width);
  if (whole > width) too_few("the KLT of keys and values", whole);
  const std::size_t layers = source.moments().size();
  std::vector<GainWeights> by_layer;
  for (std::size_t layer = 0; layer < layers; ++layer) by_layer.push_back(weights(layer));
  gains.removed.resize(layers);
  gains.kept.resize(layers);
  std::vector<std::exception_ptr> failures(layers);  // exceptions must not leave a parallel region
#pragma omp parallel for schedule(dynamic)
  for (std::size_t layer = 0; layer < layers; ++layer) {
    try {
      const LayerMoments& moments = source.moments()[layer];
      gains.removed[layer] = coding_gains(moments, shape, documents, true, by_layer[layer]);
      gains.kept[layer] = coding_gains(moments, shape, documents, false, by_layer[layer]);
    } catch (...) {
      failures[layer] = std::current_exception();
    }
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return gains;
}

GainOptimism gain_optimism(const ModelGains& gains) {
  const auto tokens = static_cast<double>(gains.tokens);
  const std::size_t width = gains.shape.kv_heads * gains.shape.head_dim;
  const auto of = [&](std::size_t channels) {
    return tokens >= 2.0 * static_cast<double>(channels) ? optimism(channels, tokens) : 0;
  };
  GainOptimism result{
      .channels = of(1), .head = of(gains.shape.head_dim) - of(1), .whole = 0, .joint = 0, .tokens = {}};
  if (of(width) > 0) result.whole = of(width) - of(gains.shape.head_dim);
  if (of(2 * width) > 0) result.joint = of(2 * width) - of(width);
  for (const std::size_t block : kBlockTokens)
    if (block <= gains.shape.lags()) result.tokens.push_back(optimism(1, tokens / static_cast<double>(block)) - of(1));
  return result;
}

StepMeans step_means(const ModelGains& gains, StateKind state) {
  const GainOptimism noise = gain_optimism(gains);
  const auto mean = [&](double optimistic, auto&& value) {
    return mean_over_layers(gains, optimistic, [&](const LayerGains& layer) { return value(layer.states[state]); });
  };
  return {.mean = mean(0, [](const StateGains& of) { return of.layer.mean; }),
          .channels = mean(noise.channels, [](const StateGains& of) { return of.layer.channels; }),
          .head = mean(noise.head, [](const StateGains& of) { return of.layer.head; }),
          .whole = mean(noise.whole, [](const StateGains& of) { return of.whole.value_or(0); }),
          .tokens = noise.tokens.empty()
                        ? 0
                        : mean(noise.tokens.back(), [](const StateGains& of) { return of.layer.tokens.back(); }),
          .idle_share = mean(0, [](const StateGains& of) { return of.idle_share; })};
}

double joint_mean(const ModelGains& gains) {
  return mean_over_layers(gains, gain_optimism(gains).joint,
                          [](const LayerGains& layer) { return layer.joint.value_or(0); });
}

}  // namespace kvs::inline analyzers
