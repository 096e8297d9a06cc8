// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/attention_pairs.h"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "model/model_tensors.h"

namespace kvs::inline calibrate {
namespace {

constexpr float kMinWeight = 1e-7F;  // pairs with less attention are ignored

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// One document's queries and keys of a layer in host memory.
struct HostStates {
  std::vector<float> q, k, cosine, sine;
  std::size_t tokens = 0, head_dim = 0, chunks = 0, group = 0;
  float factor = 1;  // RopeTable::factor squared, because it scales both sides

  const float* query(std::size_t head, std::size_t token) const { return &q[(head * tokens + token) * head_dim]; }
  const float* key(std::size_t head, std::size_t token) const { return &k[(head / group * tokens + token) * head_dim]; }

  /// Computes the features of a pair. @return its score
  float features(std::size_t head, std::size_t i, std::size_t j, float* to) const {
    const float *const x = query(head, i), *const y = key(head, j);
    const float *const ci = &cosine[i * chunks], *const si = &sine[i * chunks], *const cj = &cosine[j * chunks],
                       *const sj = &sine[j * chunks];
    float score = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      const float a = x[c] * y[c] + x[c + chunks] * y[c + chunks], b = x[c + chunks] * y[c] - x[c] * y[c + chunks];
      const float turned = a * (ci[c] * cj[c] + si[c] * sj[c]) - b * (si[c] * cj[c] - ci[c] * sj[c]);
      to[c] = turned;
      to[chunks + c] = factor * a;
      to[2 * chunks + c] = factor * b;
      score += turned;
    }
    for (std::size_t channel = 2 * chunks; channel < head_dim; ++channel) score += factor * x[channel] * y[channel];
    return score;
  }
};

/// Converts scores to attention weights, in place. @return the weight of the head's sink; 0 without one
float softmax(std::span<float> scores, std::size_t head, const ScoreRule& rule) {
  for (float& score : scores) {
    score *= rule.scale;
    if (rule.softcap > 0) score = rule.softcap * std::tanh(score / rule.softcap);
  }
  const float sink = rule.sinks.empty() ? -std::numeric_limits<float>::infinity() : rule.sinks[head];
  const float most = std::max(*std::ranges::max_element(scores), sink);
  const float sunk = std::exp(sink - most);
  float sum = sunk;
  for (float& score : scores) sum += score = std::exp(score - most);
  for (float& score : scores) score /= sum;
  return sunk / sum;
}

/// Working memory of a thread.
struct Workspace {
  Workspace(std::size_t tokens, std::size_t features)
      : features_of(tokens + 1, features), mean(features), gram(features, features), weights(tokens) {}

  Rows features_of;  // [key or sink, feature]
  Eigen::RowVectorXf mean;
  Eigen::MatrixXf gram;  // of one head, its lower triangle
  std::vector<float> weights;
};

/// Adds one query's part to its head's sums.
void add_query(const HostStates& states, std::size_t head, std::size_t i, const ScoreRule& rule, Workspace& space,
               std::span<double> mass) {
  const std::size_t first = oldest_read(i, rule.window, rule.chunk), count = i + 1 - first;
  const std::span<float> weights = std::span(space.weights).first(count);
  Rows& work = space.features_of;
  for (std::size_t n = 0; n < count; ++n)
    weights[n] = states.features(head, i, first + n, work.row(static_cast<Eigen::Index>(n)).data());
  const float sunk = softmax(weights, head, rule);
  Eigen::Index used = 0;
  space.mean.setZero();
  for (std::size_t n = 0; n < count; ++n) {
    mass[first + n] += weights[n];
    if (weights[n] < kMinWeight) continue;
    space.mean += weights[n] * work.row(static_cast<Eigen::Index>(n));
    work.row(used) = work.row(static_cast<Eigen::Index>(n));
    weights[static_cast<std::size_t>(used++)] = weights[n];
  }
  for (Eigen::Index n = 0; n < used; ++n)
    work.row(n) = std::sqrt(weights[static_cast<std::size_t>(n)]) * (work.row(n) - space.mean);
  // A sink is a key whose features are 0.
  if (sunk >= kMinWeight) work.row(used++) = -std::sqrt(sunk) * space.mean;
  space.gram.selfadjointView<Eigen::Lower>().rankUpdate(work.topRows(used).transpose());
}

}  // namespace

ScoreRule score_rule(const ModelConfig& model, std::size_t layer) {
  const AttentionConfig& attention = model.layer[layer].attention;
  return {attention.score_scale(), attention.softcap, attention.window, {}, attention.chunk};
}

namespace {

/// Returns true if the scores of every model of a family are q·k / sqrt(head_dim) over all tokens.
bool has_plain_scores(const Architecture& row) {
  const ConfigKeys& keys = row.keys;
  return row.windows == WindowRule::kNone && row.gguf_windows == WindowRule::kNone && row.layers == nullptr &&
         keys.attention_softcap.empty() && keys.attention_scalar.empty() && !keys.multipliers && !keys.sinks;
}

}  // namespace

void read_sinks(std::span<ScoreRule> rules, std::span<const std::size_t> layers, const ModelConfig& model,
                const ModelSource* source) {
  const Architecture* const row = find_architecture_named(model.architecture);
  if (!rules.empty() && source == nullptr && (row == nullptr || !has_plain_scores(*row)))
    throw Error(ErrorCode::kUsage, "--capture",
                "found states of a model (" + model.architecture +
                    ") that may scale, cap or limit its attention scores or have sinks, expected --model, which says");
  for (std::size_t n = 0; n < rules.size() && source != nullptr; ++n) {
    if (!model.layer[layers[n]].attention.sinks) continue;
    rules[n].sinks = source->tensors().vector(TensorRole::kSinks, layers[n]);
  }
}

void AttentionPairs::add(DeviceMemory& device, const DocumentStates& states, const RopeTable& table,
                         const ScoreRule& rule, TensorView<double, 3> gram, std::span<double> mass) {
  const auto [heads, tokens, head_dim] = states[StateKind::kQPre].shape();
  HostStates host{download(device, states[StateKind::kQPre]),
                  download(device, states[StateKind::kKPre]),
                  download(device, table.cosine),
                  download(device, table.sine),
                  tokens,
                  head_dim,
                  table.cosine.extent(1),
                  heads / states[StateKind::kKPre].extent(0),
                  table.factor * table.factor};
  const std::size_t queries = std::min(tokens, kQueries), size = features(host.chunks);
  std::vector<double> masses(heads * tokens);
  // Memory is allocated here, because exceptions must not leave a parallel region.
  const std::size_t threads = std::min(static_cast<std::size_t>(omp_get_max_threads()), heads);
  std::vector<Workspace> work(threads, Workspace(tokens, size));
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(work.size()))
  for (std::size_t head = 0; head < heads; ++head) {
    Workspace& space = work[static_cast<std::size_t>(omp_get_thread_num())];
    space.gram.setZero();
    const std::span<double> own = std::span(masses).subspan(head * tokens, tokens);
    for (std::size_t n = 0; n < queries; ++n)
      add_query(host, head, (2 * n + 1) * tokens / (2 * queries), rule, space, own);
    for (std::size_t row = 0; row < size; ++row)
      for (std::size_t column = 0; column < size; ++column)
        gram(head, row, column) += space.gram(static_cast<Eigen::Index>(std::max(row, column)),
                                              static_cast<Eigen::Index>(std::min(row, column)));
  }
  const double share = static_cast<double>(tokens) / static_cast<double>(queries);
  for (std::size_t n = 0; n < masses.size(); ++n) mass[n % tokens] += share * masses[n];
}

}  // namespace kvs::inline calibrate
