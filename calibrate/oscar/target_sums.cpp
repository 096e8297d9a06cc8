// SPDX-License-Identifier: Apache-2.0
#include "calibrate/oscar/target_sums.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace kvs::inline calibrate {
namespace {

using OscarRowsF =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
using OscarSquare = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// Adds Σ x xᵀ. @param rows  rows of `size` values, `stride` values apart
void add_products(const float* rows, std::size_t count, std::size_t size, std::size_t stride, double* sum) {
  const auto columns = static_cast<Eigen::Index>(size);
  const Eigen::MatrixXd x = OscarRowsF(rows, static_cast<Eigen::Index>(count), columns,
                                       Eigen::OuterStride<>(static_cast<Eigen::Index>(stride)))
                                .cast<double>();
  OscarSquare(sum, columns, columns).noalias() += x.transpose() * x;
}

std::size_t bit_reversed(std::size_t index, std::size_t size) {
  std::size_t reversed = 0;
  for (std::size_t bit = 1; bit < size; bit *= 2) reversed = 2 * reversed + (index & bit ? 1 : 0);
  return reversed;
}

}  // namespace

OscarSums::OscarSums(const ModelSource& source) : indices_(source.config().cached_layers()) {
  for (const std::size_t layer : indices_) {
    const AttentionConfig& attention = source.config().layer[layer].attention;
    layers_.push_back({.layer = layer, .kv_heads = attention.kv_heads, .head_dim = attention.head_dim});
    rules_.push_back(score_rule(source.config(), layer));
    sums_.emplace_back(2 * attention.kv_heads * attention.head_dim * attention.head_dim);
  }
  read_sinks(rules_, indices_, source.config(), &source);
}

void OscarSums::add(StateSource& source, std::size_t document) {
  const StateNeeds needs{.layers = indices_, .states = {StateKind::kQPre, StateKind::kKPost, StateKind::kV}};
  Backend& backend = source.backend();
  source.visit(document, needs, [&](const DocumentStates& states) {
    const auto at = static_cast<std::size_t>(std::ranges::find(indices_, states.layer) - indices_.begin());
    const ScoreRule& rule = rules_[at];
    const BackendTensor<float, 3> turned = copy_of(backend, states[StateKind::kQPre]);
    const auto [heads, tokens, head_dim] = turned.view().shape();
    const std::size_t kv_heads = layers_[at].kv_heads, square = head_dim * head_dim;
    backend.rope(turned.view().reshape<4>({1, heads, tokens, head_dim}), source.rope(states.layer), 0,
                 RopeDirection::kForward, {});
    const OperandBuffer outputs(backend, tokens, heads * head_dim);
    BackendTensor<float, 1> sinks;
    if (!rule.sinks.empty()) {
      sinks = BackendTensor<float, 1>(backend, {heads});
      backend.upload(sinks.view().data(), rule.sinks.data(), sinks.bytes());
    }
    backend.attention({.q = turned.view().reshape<4>({1, heads, tokens, head_dim}),
                       .k = states[StateKind::kKPost].reshape<4>({1, kv_heads, tokens, head_dim}),
                       .v = states[StateKind::kV].reshape<4>({1, kv_heads, tokens, head_dim}),
                       .scale = rule.scale,
                       .window = rule.window,
                       .chunk = rule.chunk,
                       .softcap = rule.softcap,
                       .sinks = sinks.view()},
                      outputs.get());
    const std::vector<float> q = download(backend, turned.view()), o = download(backend, outputs.get());
    for (std::size_t head = 0; head < heads; ++head) {
      double* const sum = &sums_[at][head / (heads / kv_heads) * square];
      add_products(&q[head * tokens * head_dim], tokens, head_dim, head_dim, sum);
      add_products(&o[head * head_dim], tokens, head_dim, heads * head_dim, sum + kv_heads * square);
    }
  });
}

std::vector<OscarRotations> OscarSums::rotations(CalibrationOps& ops) const {
  std::vector<OscarRotations> found = layers_;
  for (std::size_t n = 0; n < found.size(); ++n) {
    OscarRotations& one = found[n];
    const std::size_t square = one.head_dim * one.head_dim;
    for (std::size_t head = 0; head < 2 * one.kv_heads; ++head) {
      const std::span<const double> sum = std::span(sums_[n]).subspan(head * square, square);
      const std::vector<float> rotation = oscar_rotation(ops, {sum, {one.head_dim, one.head_dim}});
      std::vector<float>& side = head < one.kv_heads ? one.keys : one.values;
      side.insert(side.end(), rotation.begin(), rotation.end());
    }
  }
  return found;
}

std::vector<std::span<const double>> OscarSums::state() const { return {sums_.begin(), sums_.end()}; }

double oscar_memory(const ModelConfig& model) {
  double numbers = 0;
  for (const std::size_t layer : model.cached_layers()) {
    const AttentionConfig& attention = model.layer[layer].attention;
    numbers += 2.0 * static_cast<double>(attention.kv_heads * attention.head_dim * attention.head_dim);
  }
  return numbers * (sizeof(double) + sizeof(float));
}

std::vector<float> oscar_rotation(CalibrationOps& ops, TensorView<const double, 2> covariance) {
  const std::size_t size = covariance.extent(0);
  std::vector<double> basis = ops.svd(covariance, size).left;  // [value, vector]
  for (std::size_t vector = 0; vector < size; ++vector) {
    double largest = 0;
    for (std::size_t at = vector; at < basis.size(); at += size)
      if (std::abs(basis[at]) > std::abs(largest)) largest = basis[at];
    if (largest < 0)
      for (std::size_t at = vector; at < basis.size(); at += size) basis[at] = -basis[at];
  }
  const std::size_t run = size & (~size + 1), blocks = size / run;  // run: the largest power of two that divides size
  std::vector<float> rotation(size * size);
  for (std::size_t row = 0; row < size; ++row)
    for (std::size_t column = 0; column < size; ++column) {
      const std::size_t block = column / run, at = column % run;
      double sum = 0;
      for (std::size_t n = 0; n < run; ++n) {
        const double value = basis[row * size + n * blocks + block];
        sum += std::popcount(n & at) % 2 == 0 ? value : -value;
      }
      rotation[row * size + block * run + bit_reversed(at, run)] =
          static_cast<float>(sum / std::sqrt(static_cast<double>(run)));
    }
  return rotation;
}

}  // namespace kvs::inline calibrate
