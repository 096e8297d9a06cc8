// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/moments.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "calibrate/common/saved_sums.h"
#include "calibrate/transform/token_inputs.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using DoubleRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }

/// A layer's RoPE table on the host.
struct Angles {
  std::vector<float> cosine, sine;
  std::size_t chunks;

  /// Applies R of a position, or Rᵀ, to each row in place.
  template <class Matrix>
  void turn(Matrix&& rows, std::size_t position, bool back) const {
    for (std::size_t c = 0; c < chunks; ++c) {
      const float co = cosine[position * chunks + c], si = (back ? -1.0F : 1.0F) * sine[position * chunks + c];
      const auto a = rows.col(index(c)).eval(), b = rows.col(index(c + chunks)).eval();
      rows.col(index(c)) = a * co - b * si;
      rows.col(index(c + chunks)) = b * co + a * si;
    }
  }
};

/// The contribution of a query head.
struct HeadCosts {
  Rows keys;          // [head_dim, head_dim]
  double weight = 0;  // Σ p²
};

/// Returns weights of causal attention, [query, key]. With a sink those of a query sum to less than 1.
Rows attention_weights(const Rows& q, const Rows& k, std::size_t query_head, const ScoreRule& rule) {
  const float sink = rule.sinks.empty() ? -std::numeric_limits<float>::infinity() : rule.sinks[query_head];
  Rows p = rule.scale * (q * k.transpose());
  if (rule.softcap > 0) p = rule.softcap * (p / rule.softcap).array().tanh();
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    const Eigen::Index first = index(oldest_read(static_cast<std::size_t>(i), rule.window, rule.chunk)),
                       count = i + 1 - first;
    auto seen = p.row(i).segment(first, count).array();
    const float most = std::max(seen.maxCoeff(), sink);
    seen = (seen - most).exp().eval();
    seen /= seen.sum() + std::exp(sink - most);
    p.row(i).head(first).setZero();
    p.row(i).tail(p.cols() - first - count).setZero();
  }
  return p;
}

/// @param q, k, v  [token, head_dim], q and k rotated
/// @param near  number of keys, including its own, that a query reads before they are coded
HeadCosts head_costs(const Rows& q, const Rows& k, const Rows& v, const Rows& output, std::size_t query_head,
                     const ScoreRule& rule, const Angles& angles, const std::vector<std::size_t>& keys,
                     std::size_t sinks, std::size_t near) {
  Rows p = attention_weights(q, k, query_head, rule);
  const Rows o = p * v, v_output = v * output, o_output = o * output;
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    const Eigen::Index count = std::min(i + 1, index(near));
    p.row(i).segment(i + 1 - count, count).setZero();
  }
  const Eigen::VectorXf v_norm = v_output.cwiseProduct(v).rowwise().sum(),
                        o_norm = o_output.cwiseProduct(o).rowwise().sum();
  HeadCosts costs{Rows::Zero(q.cols(), q.cols()),
                  static_cast<double>(p.rightCols(p.cols() - index(sinks)).cwiseAbs2().sum())};
  for (const std::size_t key : keys) {
    const Eigen::Index j = index(key), count = q.rows() - j;
    const Eigen::VectorXf distance =
        (v_norm(j) + o_norm.tail(count).array() - 2 * (o_output.bottomRows(count) * v.row(j).transpose()).array())
            .max(0);
    const Eigen::VectorXf root = p.col(j).tail(count).array() * distance.array().sqrt() * rule.scale;
    const Rows weighed = root.asDiagonal() * q.bottomRows(count);
    Rows gram = weighed.transpose() * weighed;
    angles.turn(gram, key, true);
    gram.transposeInPlace();
    angles.turn(gram, key, true);
    costs.keys += gram;
  }
  return costs;
}

/// Returns `count` tokens of [first, tokens), evenly spaced.
std::vector<std::size_t> spaced(std::size_t first, std::size_t tokens, std::size_t count) {
  std::vector<std::size_t> chosen;
  const std::size_t all = tokens - first, used = std::min(all, count);
  for (std::size_t n = 0; n < used; ++n) chosen.push_back(first + (2 * n + 1) * all / (2 * used));
  return chosen;
}

/// Returns true for a document that is not summed.
bool is_held_out(const TransformGeometry& geometry, std::size_t document) {
  return geometry.holdout > 0 && document % geometry.holdout == geometry.holdout - 1;
}

/// Returns the tokens of a document whose rows are kept.
std::vector<std::size_t> sampled(const TransformGeometry& geometry, std::size_t document, std::size_t tokens) {
  const std::size_t all = tokens - geometry.sinks, run = std::min(geometry.run, all);
  std::size_t runs = std::max<std::size_t>(1, TransformMoments::kSamples / run);
  if (geometry.holdout > 0) runs = is_held_out(geometry, document) ? all / run : 0;
  std::vector<std::size_t> chosen;
  for (const std::size_t first : spaced(geometry.sinks, tokens - run + 1, runs))
    for (std::size_t n = 0; n < run; ++n) chosen.push_back(first + n);
  return chosen;
}

std::size_t products_of(const TransformGeometry& geometry, const LayerGroup& group) {
  const std::size_t values = geometry.values(group);
  return values * values;
}

}  // namespace

std::vector<LayerGroup> single_layers(std::size_t layers) {
  std::vector<LayerGroup> groups(layers);
  for (std::size_t n = 0; n < layers; ++n) groups[n].first = n;
  return groups;
}

TransformMoments::TransformMoments(TransformGeometry geometry, std::vector<ScoreRule> rules,
                                   std::vector<std::vector<double>> outputs)
    : geometry_(std::move(geometry)),
      rules_(std::move(rules)),
      outputs_(std::move(outputs)),
      sums_(geometry_.values()),
      keys_(all(squares_of)),
      weights_(all(queries_of)),
      counts_(3) {
  if (geometry_.groups.empty()) geometry_.groups = single_layers(geometry_.layers.size());
  std::size_t size = 0;
  for (const LayerGroup& group : geometry_.groups) size += products_of(geometry_, group);
  outers_.resize(size);
  if (geometry_.inputs == 0) return;
  input_products_.resize((geometry_.inputs + 1) * (geometry_.inputs + 1));
  input_rows_.resize((geometry_.inputs + 1) * geometry_.values());
}

std::pair<std::size_t, std::size_t> TransformMoments::group_of(std::size_t n) const {
  std::size_t index = 0, at = 0;
  for (; geometry_.groups[index].first + geometry_.groups[index].count <= n; ++index)
    at += products_of(geometry_, geometry_.groups[index]);
  return {index, at};
}

void TransformMoments::add(StateSource& source, std::size_t document) {
  const std::size_t tokens = source.tokens();
  if (tokens <= geometry_.sinks) throw Error(ErrorCode::kInternal, "transform", "a document of sinks alone");
  StateNeeds needs{.layers = geometry_.layers};
  for (const StateKind kind : {StateKind::kQPre, StateKind::kKPre, StateKind::kV}) needs.states.insert(kind);
  needs.x = geometry_.inputs > 0;
  Document of_document;
  of_document.summed = !is_held_out(geometry_, document);
  of_document.sampled = sampled(geometry_, document, tokens);
  source.visit(document, needs, [&](const DocumentStates& states) {
    const auto at = std::ranges::find(geometry_.layers, states.layer);
    add_layer(source.backend(), states, source.rope(states.layer),
              static_cast<std::size_t>(at - geometry_.layers.begin()), of_document);
  });
  const std::vector<double>& samples = of_document.samples;
  samples_.insert(samples_.end(), samples.begin(), samples.end());  // visits in turns end in the documents' order
  input_samples_.insert(input_samples_.end(), of_document.input_samples.begin(), of_document.input_samples.end());
  if (!of_document.sampled.empty()) counts_[2] += 1;
  if (!of_document.summed) return;
  counts_[0] += static_cast<double>(tokens - geometry_.sinks);
  counts_[1] += static_cast<double>(spaced(geometry_.sinks, tokens, kKeys).size());
}

void TransformMoments::add_layer(Backend& device, const DocumentStates& states, const RopeTable& table, std::size_t n,
                                 Document& document) {
  const auto [heads, tokens, head_dim] = states[StateKind::kQPre].shape();
  const TransformHeads& sizes = geometry_.heads[n];
  const std::size_t values = sizes.values(), half = values / 2;
  const Angles angles{download(device, table.cosine), download(device, table.sine), table.cosine.extent(1)};
  const auto matrices = [&](StateKind kind, std::size_t count) {
    const std::vector<float> all = download(device, states[kind]);
    std::vector<Rows> of_head;
    for (std::size_t head = 0; head < count; ++head)
      of_head.emplace_back(
          Eigen::Map<const Rows>(all.data() + head * tokens * head_dim, index(tokens), index(head_dim)));
    return of_head;
  };
  std::vector<Rows> q = matrices(StateKind::kQPre, heads), k = matrices(StateKind::kKPre, sizes.kv_heads);
  const std::vector<Rows> v = matrices(StateKind::kV, sizes.kv_heads);

  Rows rows(index(tokens), index(values));
  for (std::size_t head = 0; head < sizes.kv_heads; ++head) {
    rows.middleCols(index(head * head_dim), index(head_dim)) = k[head];
    rows.middleCols(index(half + head * head_dim), index(head_dim)) = v[head];
  }
  for (const std::size_t token : document.sampled)
    for (std::size_t i = 0; i < values; ++i)
      document.samples.push_back(static_cast<double>(rows(index(token), index(i))));
  if (geometry_.inputs > 0 && n == 0) add_inputs(device, states.x, document);
  if (!document.summed) return;
  const DoubleRows coded = rows.bottomRows(index(tokens - geometry_.sinks)).cast<double>();
  Eigen::Map<Eigen::VectorXd>(&sums_[geometry_.values_before(n)], index(values)) += coded.colwise().sum().transpose();
  if (geometry_.inputs > 0) {
    const Eigen::Map<const DoubleRows> inputs(document.inputs.data(), coded.rows(), index(geometry_.inputs + 1));
    Eigen::Map<DoubleRows>(input_rows_.data(), inputs.cols(), index(geometry_.values()))
        .middleCols(index(geometry_.values_before(n)), index(values)) += inputs.transpose() * coded;
  }
  add_products(n, {coded.data(), coded.data() + coded.size()}, document);

  for (auto* const states_of : {&q, &k})
    for (Rows& head : *states_of)
      for (std::size_t token = 0; token < tokens; ++token) angles.turn(head.row(index(token)), token, false);
  const std::vector<std::size_t> keys = spaced(geometry_.sinks, tokens, kKeys);
  std::vector<HeadCosts> costs(heads);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t kv = head / sizes.group();
    const Eigen::Map<const DoubleRows> output(outputs_[n].data() + head * head_dim * head_dim, index(head_dim),
                                              index(head_dim));
    costs[head] = head_costs(q[head], k[kv], v[kv], output.cast<float>(), head, rules_[n], angles, keys,
                             geometry_.sinks, geometry_.recent * 3 / 2);
  }
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t at = before(n, squares_of) + head * head_dim * head_dim;
    Eigen::Map<DoubleRows>(&keys_[at], index(head_dim), index(head_dim)) += costs[head].keys.cast<double>();
    weights_[before(n, queries_of) + head] += costs[head].weight;
  }
}

/// Adds Σ e eᵀ. @param x  the first layer's input, [token, d_model]
void TransformMoments::add_inputs(Backend& backend, const Operand& x, Document& document) {
  if (x.rows <= geometry_.sinks || x.columns != geometry_.inputs)
    throw Error(ErrorCode::kInternal, "transform", "states without embeddings");
  const std::vector<float> values = download(backend, rows_of_operand(backend, x).view());
  const Eigen::Map<const Rows> all(values.data(), index(x.rows), index(x.columns));
  for (const std::size_t token : document.sampled)
    for (Eigen::Index i = 0; i < all.cols(); ++i)
      document.input_samples.push_back(static_cast<double>(all(index(token), i)));
  if (!document.summed) return;
  const Eigen::Index coded = index(x.rows - geometry_.sinks);
  DoubleRows inputs = DoubleRows::Ones(coded, all.cols() + 1);
  inputs.leftCols(all.cols()) = all.bottomRows(coded).cast<double>();
  document.inputs.assign(inputs.data(), inputs.data() + inputs.size());
  Eigen::Map<DoubleRows>(input_products_.data(), inputs.cols(), inputs.cols()) += inputs.transpose() * inputs;
}

/// Adds Σ x xᵀ of a group, when its last layer is there. @param rows  [token, value] of the layer at index `n`
void TransformMoments::add_products(std::size_t n, std::vector<double> rows, Document& document) {
  const auto [index_of_group, at] = group_of(n);
  const LayerGroup group = geometry_.groups[index_of_group];
  document.rows.push_back(std::move(rows));
  if (n + 1 < group.first + group.count) return;
  const std::size_t values = geometry_.heads[n].values(), tokens = document.rows.front().size() / values;
  Eigen::Map<DoubleRows> sum(&outers_[at], index(geometry_.values(group)), index(geometry_.values(group)));
  const auto of_layer = [&](std::size_t layer) {
    return Eigen::Map<const DoubleRows>(document.rows[layer].data(), index(tokens), index(values));
  };
  const std::size_t pairs = group.count * group.count;
#pragma omp parallel for schedule(dynamic) if (pairs > 1)
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::size_t row = pair / group.count, column = pair % group.count;
    if (column > row) continue;
    const DoubleRows product = of_layer(row).transpose() * of_layer(column);
    sum.block(index(row * values), index(column * values), index(values), index(values)) += product;
    if (column < row)
      sum.block(index(column * values), index(row * values), index(values), index(values)) += product.transpose();
  }
  document.rows.clear();
}

std::vector<double> TransformMoments::outer(const LayerGroup& layers) const {
  const auto [index_of_group, at] = group_of(layers.first);
  const LayerGroup group = geometry_.groups[index_of_group];
  const std::size_t all = geometry_.values(group), values = geometry_.values(layers),
                    first = (layers.first - group.first) * geometry_.heads[layers.first].values();
  std::vector<double> part(values * values);
  for (std::size_t row = 0; row < values; ++row)
    std::copy_n(&outers_[at + (first + row) * all + first], values, &part[row * values]);
  return part;
}

std::vector<double> TransformMoments::key_costs(std::size_t n) const {
  const TransformHeads& sizes = geometry_.heads[n];
  const std::size_t block = sizes.square();
  std::vector<double> costs(sizes.kv_heads * block);
  const std::span<const double> of_queries = part(keys_, n, squares_of);
  for (std::size_t i = 0; i < of_queries.size(); ++i)
    costs[i / block / sizes.group() * block + i % block] += of_queries[i] / counts_[1];
  return costs;
}

std::vector<double> TransformMoments::value_costs(std::size_t n) const {
  const TransformHeads& sizes = geometry_.heads[n];
  const std::size_t block = sizes.square();
  std::vector<double> costs(sizes.kv_heads * block);
  const std::vector<double>& grams = outputs_[n];
  const std::span<const double> weights = part(weights_, n, queries_of);
  for (std::size_t i = 0; i < grams.size(); ++i)
    costs[i / block / sizes.group() * block + i % block] += grams[i] * weights[i / block] / counts_[0];
  return costs;
}

std::vector<float> TransformMoments::samples(const LayerGroup& layers) const {
  const std::size_t tokens = samples_of_document(), of_document = tokens * geometry_.values(),
                    values = geometry_.heads[layers.first].values();
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(counts_[2]) * tokens * geometry_.values(layers));
  for (std::size_t at = tokens * geometry_.values_before(layers.first); at < samples_.size(); at += of_document)
    for (std::size_t token = 0; token < tokens; ++token)
      for (std::size_t layer = 0; layer < layers.count; ++layer) {
        const double* const row = &samples_[at + (layer * tokens + token) * values];
        rows.insert(rows.end(), row, row + values);
      }
  return rows;
}

std::vector<std::span<const double>> TransformMoments::state() const {
  return {sums_, outers_, keys_, weights_, counts_, samples_, input_products_, input_rows_, input_samples_};
}

void TransformMoments::restore(std::span<const std::vector<double>> state) {
  const std::array<SavedSum, 9> sums{{{&sums_},
                                      {&outers_},
                                      {&keys_},
                                      {&weights_},
                                      {&counts_},
                                      {&samples_, true},
                                      {&input_products_},
                                      {&input_rows_},
                                      {&input_samples_, true}}};
  restore_sums(state, sums);
}

}  // namespace kvs::inline calibrate
