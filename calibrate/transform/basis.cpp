// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/basis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "calibrate/common/whitening.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kShrinkage = 1e-3, kDamping = 1e-3, kMinVariance = 1e-12;

using MatrixView = TensorView<double, 2>;

void increase_diagonal(std::vector<double>& matrix, std::size_t values) {
  for (std::size_t row = 0; row < values; ++row) {
    double& value = matrix[row * (values + 1)];
    value = std::max(0.0, value) * (1 + kShrinkage);
  }
}

/// Returns Σ.
std::vector<double> covariance(const TransformMoments& moments, const LayerGroup& layers,
                               const std::vector<double>& mean) {
  const std::size_t values = mean.size();
  std::vector<double> matrix = moments.outer(layers);
  for (std::size_t row = 0; row < values; ++row)
    for (std::size_t column = 0; column < values; ++column) {
      double& value = matrix[row * values + column];
      value = value / moments.tokens() - mean[row] * mean[column];
    }
  return matrix;
}

/// Returns L of each head's keys, then of each head's values: [head, head_dim, head_dim].
std::vector<double> cost_factors(CalibrationOps& ops, const TransformMoments& moments, std::size_t n,
                                 const TransformScales& scales, TransformRows rows) {
  std::vector<double> factors = moments.key_costs(n), values = moments.value_costs(n);
  const std::size_t head_dim = moments.geometry().heads[n].head_dim, block = head_dim * head_dim;
  for (std::size_t at = 0; at < factors.size(); ++at) {
    const bool diagonal = at % block % (head_dim + 1) == 0;
    factors[at] *= diagonal || rows == TransformRows::kLayer ? scales.keys : 0;
  }
  for (double& cost : values) cost *= scales.values;
  factors.insert(factors.end(), values.begin(), values.end());
  for (std::size_t at = 0; at < factors.size(); at += block)
    damped_cholesky(ops, MatrixView(std::span(factors).subspan(at, block), {head_dim, head_dim}), kDamping);
  return factors;
}

/// Computes x · L or x · L⁻¹ in place, where L has the blocks of cost_factors() on its diagonal.
void multiply_blocks(CalibrationOps& ops, std::vector<double>& x, std::size_t values, std::span<const double> factors,
                     std::size_t head_dim, Triangular how) {
  const std::size_t rows = x.size() / values;
  std::vector<double> part(rows * head_dim);
  for (std::size_t first = 0; first < values; first += head_dim) {
    for (std::size_t row = 0; row < rows; ++row) std::copy_n(&x[row * values + first], head_dim, &part[row * head_dim]);
    ops.multiply_lower(
        MatrixView(part, {rows, head_dim}),
        TensorView<const double, 2>(factors.subspan(first * head_dim, head_dim * head_dim), {head_dim, head_dim}), how);
    for (std::size_t row = 0; row < rows; ++row) std::copy_n(&part[row * head_dim], head_dim, &x[row * values + first]);
  }
}

void transpose(std::vector<double>& square, std::size_t size) {
  for (std::size_t row = 0; row < size; ++row)
    for (std::size_t column = 0; column < row; ++column)
      std::swap(square[row * size + column], square[column * size + row]);
}

/// Values [first, first + size) that are transformed together.
struct Block {
  std::size_t first, size;
};

std::vector<Block> blocks_of(const TransformHeads& heads, TransformRows rows, std::size_t values) {
  const std::size_t keys = values / 2;
  if (rows == TransformRows::kLayer) return {{0, values}};
  std::vector<Block> blocks;
  for (std::size_t channel = 0; channel < keys; ++channel) blocks.push_back({channel, 1});
  for (std::size_t first = keys; first < values; first += heads.head_dim) blocks.push_back({first, heads.head_dim});
  return blocks;
}

/// Appends Λ and Uᵀ, [coefficient, value], of a block of U Λ Uᵀ. Overwrites `weighed` if the block is all of it.
void decompose(CalibrationOps& ops, std::vector<double>& weighed, std::size_t values, const Block& block,
               const WantedVectors& wanted, std::vector<double>& variances, std::vector<double>& vectors) {
  const std::size_t first = block.first, size = block.size;
  const auto found = [&](std::span<double> matrix) {
    const auto all = [size](std::span<const double>) { return size; };
    return ops.eigenvectors(MatrixView(matrix, {size, size}), wanted ? wanted : all);
  };
  if (size == values) {
    Eigenvectors eigen = found(weighed);
    eigen.values.resize(eigen.vectors.size() / values);
    variances = std::move(eigen.values);
    vectors = std::move(eigen.vectors);
    return;
  }
  std::vector<double> part(size * size);
  for (std::size_t row = 0; row < size; ++row)
    std::copy_n(&weighed[(first + row) * values + first], size, &part[row * size]);
  const Eigenvectors eigen = size == 1 ? Eigenvectors{part, {1}} : found(part);
  variances.insert(variances.end(), eigen.values.begin(), eigen.values.end());
  vectors.resize(vectors.size() + size * values);
  double* const rows = vectors.data() + vectors.size() - size * values;
  for (std::size_t row = 0; row < size; ++row)
    std::copy_n(&eigen.vectors[row * size], size, rows + row * values + first);
}

}  // namespace

TransformBasis transform_basis(CalibrationOps& ops, const TransformMoments& moments, const LayerGroup& layers,
                               std::span<const TransformScales> scales, TransformRows rows,
                               const TokenPrediction* prediction, const WantedVectors& wanted) {
  const TransformHeads& heads = moments.geometry().heads[layers.first];
  const std::size_t values = moments.geometry().values(layers), of_layer = heads.values(), head_dim = heads.head_dim;
  TransformBasis basis;
  basis.mean.assign(moments.sum(layers).begin(), moments.sum(layers).end());
  for (double& mean : basis.mean) mean /= moments.tokens();
  std::vector<double> factors;
  for (std::size_t n = 0; n < layers.count; ++n) {
    const std::vector<double> some = cost_factors(ops, moments, layers.first + n, scales[n], rows);
    factors.insert(factors.end(), some.begin(), some.end());
  }
  std::vector<double> weighed;
  if (prediction == nullptr) {
    weighed = covariance(moments, layers, basis.mean);
  } else {
    LayerPrediction of_layers = prediction_of(*prediction, moments.geometry(), layers);
    weighed = residual_covariance(moments, layers, of_layers);
    basis.mean = std::move(of_layers.mean);
    basis.map = std::move(of_layers.map);
  }
  increase_diagonal(weighed, values);
  multiply_blocks(ops, weighed, values, factors, head_dim, Triangular::kMultiply);
  transpose(weighed, values);  // Lᵀ Σ, as Σ is symmetric
  multiply_blocks(ops, weighed, values, factors, head_dim, Triangular::kMultiply);
  std::vector<double> vectors;
  for (const Block& block : blocks_of(heads, rows, values))
    decompose(ops, weighed, values, block, wanted, basis.variances, vectors);
  const double most = *std::ranges::max_element(basis.variances);
  if (!(most > 0))
    throw Error(ErrorCode::kData, "layer " + std::to_string(moments.geometry().layers[layers.first]),
                "found keys and values that never change, expected some that do");
  const std::size_t coefficients = basis.variances.size();
  basis.synthesis = vectors;
  multiply_blocks(ops, basis.synthesis, values, factors, head_dim, Triangular::kSolve);
  basis.analysis.resize(coefficients * values);  // Uᵀ Lᵀ
  for (double& variance : basis.variances) variance = std::max(variance, kMinVariance * most);
  for (std::size_t row = 0; row < coefficients; ++row)
    for (std::size_t i = 0; i < values; ++i) {
      const double* const lower = &factors[i * head_dim];  // row i of its head's L
      const std::size_t first = i / head_dim * head_dim;
      double product = 0;
      for (std::size_t j = 0; j <= i % head_dim; ++j) product += lower[j] * vectors[row * values + first + j];
      basis.analysis[row * values + i] = product;
    }
  for (std::size_t row = 0; row < coefficients; ++row) {
    const double* const vector = &vectors[row * values];
    double keys = 0;
    for (std::size_t first = 0; first < values; first += of_layer)
      keys += std::inner_product(vector + first, vector + first + of_layer / 2, vector + first, 0.0);
    basis.key_shares.push_back(keys);
    const double deviation = std::sqrt(basis.variances[row]);
    for (std::size_t column = 0; column < values; ++column) {
      basis.analysis[row * values + column] /= deviation;
      basis.synthesis[row * values + column] *= deviation;
    }
  }
  return basis;
}

}  // namespace kvs::inline calibrate
