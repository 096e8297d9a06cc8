// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/output_weights.h"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "calibrate/common/whitening.h"

namespace kvs::inline calibrate {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kDamping = 1e-3;

/// Adds factor · X Xᵀ to `sum`, X being the rows of `x` in `channels`. x: [row, columns]; sum: [channels, channels].
void add_gram(std::span<const double> x, std::size_t columns, std::span<const std::size_t> channels, double factor,
              std::span<double> sum) {
  const auto count = static_cast<Eigen::Index>(channels.size()), width = static_cast<Eigen::Index>(columns);
  Matrix rows(count, width);
  for (Eigen::Index n = 0; n < count; ++n)
    rows.row(n) = Eigen::Map<const Eigen::RowVectorXd>(&x[channels[static_cast<std::size_t>(n)] * columns], width);
  Eigen::Map<Matrix>(sum.data(), count, count).noalias() += factor * (rows * rows.transpose());
}

std::vector<std::size_t> all_channels(std::size_t head_dim) {
  std::vector<std::size_t> channels(head_dim);
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

/// Returns W · L: the map's output has the covariance (W·L)(W·L)ᵀ.
std::vector<double> spread(CalibrationOps& ops, std::span<const float> weight, std::span<const double> factor,
                           std::size_t columns) {
  std::vector<double> product(weight.begin(), weight.end());
  ops.multiply_lower({product, {weight.size() / columns, columns}}, {factor, {columns, columns}},
                     Triangular::kMultiply);
  return product;
}

}  // namespace

std::vector<std::vector<double>> output_grams(const AttentionMaps& maps) {
  const std::size_t columns = maps.query_heads * maps.head_dim;
  std::vector<double> transposed(maps.output.size());  // [query_head · head_dim, d_model]
  for (std::size_t row = 0; row < maps.d_model; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      transposed[column * maps.d_model + row] = maps.output[row * columns + column];
  const std::vector<std::size_t> channels = all_channels(maps.head_dim);
  std::vector<std::vector<double>> grams;
  const std::size_t size = maps.head_dim * maps.d_model;
  for (std::size_t head = 0; head < maps.query_heads; ++head)
    add_gram(std::span<const double>(transposed).subspan(head * size, size), maps.d_model, channels, 1,
             grams.emplace_back(maps.head_dim * maps.head_dim));
  return grams;
}

OutputWeights output_weights(CalibrationOps& ops, const AttentionMaps& maps,
                             std::span<const std::vector<std::size_t>> rows, std::span<const double> factor) {
  const std::size_t head_dim = maps.head_dim, columns = maps.d_model, size = head_dim * columns;
  const std::vector<double> queries = spread(ops, maps.query, factor, columns),
                            values = spread(ops, maps.value, factor, columns);
  const std::vector<std::vector<double>> outputs = output_grams(maps);
  const std::vector<std::size_t> channels = all_channels(head_dim);
  OutputWeights weights;
  for (std::size_t head = 0; head < maps.kv_heads; ++head) {
    std::vector<double> covariance(head_dim * head_dim), value(head_dim * head_dim),
        key(rows[head].size() * rows[head].size());
    add_gram(std::span<const double>(values).subspan(head * size, size), columns, channels, 1, covariance);
    for (std::size_t query = head * maps.group(); query < (head + 1) * maps.group(); ++query) {
      const std::vector<double>& output = outputs[query];
      std::ranges::transform(value, output, value.begin(), std::plus{});
      const double energy = std::inner_product(output.begin(), output.end(), covariance.begin(), 0.0),
                   factor_of_score = energy * maps.scale * maps.scale;
      add_gram(std::span<const double>(queries).subspan(query * size, size), columns, rows[head], factor_of_score, key);
    }
    damped_cholesky(ops, {key, {rows[head].size(), rows[head].size()}}, kDamping);
    damped_cholesky(ops, {value, {head_dim, head_dim}}, kDamping);
    weights.keys.push_back(std::move(key));
    weights.values.push_back(std::move(value));
  }
  return weights;
}

}  // namespace kvs::inline calibrate
