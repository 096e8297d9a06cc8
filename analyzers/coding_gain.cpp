// SPDX-License-Identifier: Apache-2.0
#include "analyzers/coding_gain.h"

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <cmath>
#include <numbers>

#include "analyzers/layer_covariance.h"
#include "core/error.h"

namespace kvs::inline analyzers {
namespace {

/// Half of a difference of logarithms; rounding may make the difference negative.
double half_of(double difference) { return std::max(0.0, 0.5 * difference); }

/// Sums over the channels of a head or a layer, from which its steps are computed.
struct StepSums {
  double second_moment = 0, variance = 0;  // Σ, weighted
  double log_channels = 0, log_head = 0;   // Σ log2 of weighted variances, of the channels and of the KLTs
  double count = 0;

  StepSums& operator+=(const StepSums& other) {
    second_moment += other.second_moment;
    variance += other.variance;
    log_channels += other.log_channels;
    log_head += other.log_head;
    count += other.count;
    return *this;
  }
  StepGains gains() const {
    return {.mean = half_of(std::log2(second_moment / variance)),
            .channels = half_of(std::log2(variance / count) - log_channels / count),
            .head = half_of((log_channels - log_head) / count),
            .tokens = {},
            .tokens_by_channel = {}};
  }
};

/// Returns weight[f][τ] with S_f = Σ_τ weight[f][τ] c(τ): the variance of coefficient f of an orthonormal DCT-II of
/// `block` tokens with autocovariance c.
Matrix lag_weights(std::size_t block) {
  const auto size = to_index(block);
  Matrix basis(size, size), weights = Matrix::Zero(size, size);
  for (Eigen::Index f = 0; f < size; ++f)
    for (Eigen::Index t = 0; t < size; ++t)
      basis(f, t) = std::sqrt((f == 0 ? 1.0 : 2.0) / static_cast<double>(size)) *
                    std::cos(std::numbers::pi * static_cast<double>(f * (2 * t + 1)) / static_cast<double>(2 * size));
  for (Eigen::Index lag = 0; lag < size; ++lag)
    for (Eigen::Index f = 0; f < size; ++f)
      weights(f, lag) = (lag == 0 ? 1 : 2) * basis.row(f).head(size - lag).dot(basis.row(f).tail(size - lag));
  return weights;
}

/// Returns the gain of a DCT of blocks, averaged over components. autocovariance: [lag, component].
double block_gain(const Matrix& autocovariance, std::size_t block, double noise) {
  const Matrix power =
      ((lag_weights(block) * autocovariance.topRows(to_index(block))).cwiseMax(0.0).array() + noise).matrix();
  const Eigen::ArrayXd arithmetic = power.colwise().mean().array().log2(),
                       geometric = power.array().log2().colwise().mean();
  return 0.5 * (arithmetic - geometric).mean();
}

void add_token_gains(const LayerCovariance& layer, StateKind state, std::size_t head, const Matrix& basis,
                     StepGains& gains) {
  const std::size_t lags = layer.shape().lags();
  Matrix by_component(to_index(lags), basis.cols()), by_channel(to_index(lags), basis.cols());
  for (std::size_t lag = 0; lag < lags; ++lag) {
    const Matrix covariance = layer.lagged(state, head, lag);
    by_component.row(to_index(lag)) =
        (basis.transpose() * covariance).cwiseProduct(basis.transpose()).rowwise().sum().transpose();
    by_channel.row(to_index(lag)) = covariance.diagonal();
  }
  for (const std::size_t block : kBlockTokens) {
    if (block > lags) break;
    gains.tokens.push_back(block_gain(by_component, block, layer.noise(state)));
    gains.tokens_by_channel.push_back(block_gain(by_channel, block, layer.noise(state)));
  }
}

/// Gains of a layer's state, and Σ log2 of the eigenvalues of its heads' covariances.
struct StateResult {
  StateGains gains;
  double log_heads = 0;
};

void average_tokens(StateGains& gains, std::vector<double> StepGains::*steps) {
  std::vector<double>& mean = gains.layer.*steps;
  mean.assign((gains.heads.front().*steps).size(), 0);
  for (const StepGains& head : gains.heads)
    for (std::size_t n = 0; n < mean.size(); ++n) mean[n] += (head.*steps)[n] / static_cast<double>(gains.heads.size());
}

StateResult state_gains(const LayerCovariance& layer, StateKind state, const std::optional<StateWeights>& weights) {
  const MomentShape& shape = layer.shape();
  StateResult result;
  StateGains& gains = result.gains;
  StepSums whole, weighted_whole;
  std::vector<double> variances;
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    const Matrix covariance = layer.covariance(state, head);
    const Eigen::SelfAdjointEigenSolver<Matrix> klt(covariance);
    const Eigen::ArrayXd eigenvalues = klt.eigenvalues().array().max(layer.noise(state));
    const double log_head = eigenvalues.log2().sum();
    const auto sums_with = [&](const Eigen::ArrayXd& weight, double log2_determinant) {
      const Eigen::ArrayXd variance = weight * covariance.diagonal().array();
      return StepSums{.second_moment = (weight * layer.second_moments(state, head)).sum(),
                      .variance = variance.sum(),
                      .log_channels = variance.log2().sum(),
                      .log_head = log_head + log2_determinant,
                      .count = static_cast<double>(shape.head_dim)};
    };
    const StepSums sums = sums_with(Eigen::ArrayXd::Ones(covariance.cols()), 0);
    whole += sums;
    StepGains& steps = gains.heads.emplace_back(sums.gains());
    if (state != StateKind::kKPost) add_token_gains(layer, state, head, klt.eigenvectors(), steps);
    if (weights) {
      const double* const diagonal = weights->diagonal.data() + head * shape.head_dim;
      const StepSums weighted =
          sums_with(Eigen::Map<const Eigen::ArrayXd>(diagonal, covariance.cols()), weights->log2_determinant[head]);
      weighted_whole += weighted;
      gains.weighted_heads.push_back(weighted.gains());
    }
    result.log_heads += log_head;
    variances.insert(variances.end(), eigenvalues.begin(), eigenvalues.end());
  }
  gains.layer = whole.gains();
  average_tokens(gains, &StepGains::tokens);
  average_tokens(gains, &StepGains::tokens_by_channel);
  if (weights) gains.weighted_layer = weighted_whole.gains();
  gains.idle_share = idle_share(variances, kIdleRate);
  return result;
}

StateWeights weights_of(std::span<const Matrix> forms) {
  double mean = 0;
  for (const Matrix& form : forms) mean += form.diagonal().mean() / static_cast<double>(forms.size());
  const double floor = mean > 0 ? mean * std::pow(4, -kFinestBits) : 1;
  StateWeights weights;
  for (Matrix form : forms) {
    form.diagonal().array() += floor;
    weights.diagonal.insert(weights.diagonal.end(), form.diagonal().begin(), form.diagonal().end());
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(form, Eigen::EigenvaluesOnly);
    weights.log2_determinant.push_back(solver.eigenvalues().array().max(floor).log2().sum());
  }
  return weights;
}

}  // namespace

StateWeights query_weights(const LayerMoments& moments, const MomentShape& shape) {
  const auto size = to_index(shape.head_dim);
  std::vector<Matrix> forms;
  for (std::size_t head = 0; head < shape.kv_heads; ++head)
    forms.emplace_back(
        Eigen::Map<const Eigen::VectorXd>(moments.queries.data() + head * shape.head_dim, size).asDiagonal());
  return weights_of(forms);
}

StateWeights output_gram_weights(std::span<const std::vector<double>> grams, std::size_t kv_heads,
                                 std::size_t head_dim) {
  const auto size = to_index(head_dim);
  std::vector<Matrix> forms(kv_heads, Matrix::Zero(size, size));
  for (std::size_t query = 0; query < grams.size(); ++query)
    forms[query / (grams.size() / kv_heads)] += Eigen::Map<const Matrix>(grams[query].data(), size, size);
  return weights_of(forms);
}

LayerGains coding_gains(const LayerMoments& moments, const MomentShape& shape, std::size_t documents, bool mean_removed,
                        const GainWeights& weights) {
  const std::size_t tokens = documents * shape.counted(), width = shape.kv_heads * shape.head_dim;
  if (tokens < 2 * shape.head_dim)
    throw Error(ErrorCode::kInternal, "coding gain", "fewer than 2 tokens for a channel of a head");
  const LayerCovariance layer(moments, shape, tokens, mean_removed);
  LayerGains gains;
  double log_states = 0;
  for (const StateKind state : shape.states) {
    StateResult result = state_gains(layer, state, weights[state]);
    if (state != StateKind::kKPost && tokens >= 2 * width) {
      const double log_whole = layer.log2_determinant(shape.first_head(state), shape.kv_heads);
      result.gains.whole = half_of((result.log_heads - log_whole) / static_cast<double>(width));
      log_states += log_whole;
    }
    gains.states[state] = std::move(result.gains);
  }
  if (shape.whole_heads() == 2 * shape.kv_heads && tokens >= 4 * width)
    gains.joint = std::max(
        0.0, 0.5 * (log_states - layer.log2_determinant(0, shape.whole_heads())) / static_cast<double>(2 * width));
  return gains;
}

double optimism(std::size_t width, double tokens) {
  const double freedom = tokens - 1;
  double sum = 0;
  for (std::size_t i = 0; i < width; ++i)
    sum += std::log(freedom / 2) - boost::math::digamma((freedom - static_cast<double>(i)) / 2);
  return sum / static_cast<double>(width) / (2 * std::numbers::ln2);
}

double idle_share(std::span<const double> variances, double rate) {
  std::vector<double> sorted(variances.begin(), variances.end());
  std::ranges::sort(sorted, std::greater{});
  const auto all = static_cast<double>(sorted.size());
  if (sorted.empty() || sorted.front() <= 0) return 0;
  // With m components coded, bits(m) = Σ_{i < m} ½ log2(v_i / level). The next component is coded while it lies above
  // the level that spends all bits on the components before it.
  double log_sum = 0;
  std::size_t coded = 0;
  while (coded < sorted.size() && sorted[coded] > 0) {
    const double log_next = std::log2(sorted[coded]);
    if (coded > 0 && log_next <= (log_sum - 2 * rate * all) / static_cast<double>(coded)) break;
    log_sum += log_next;
    ++coded;
  }
  return 1 - static_cast<double>(coded) / all;
}

}  // namespace kvs::inline analyzers
