// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/prediction.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace kvs::inline calibrate {
namespace {

using Doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstDoubles = Eigen::Map<const Doubles>;

constexpr double kRidge = 1e-3;

Eigen::Index at(std::size_t n) { return static_cast<Eigen::Index>(n); }

ConstDoubles matrix(std::span<const double> values, std::size_t columns) {
  return {values.data(), at(values.size() / columns), at(columns)};
}

}  // namespace

TokenPrediction token_prediction(const TransformMoments& moments) {
  const TransformGeometry& geometry = moments.geometry();
  const std::size_t inputs = geometry.inputs, size = inputs + 1, values = geometry.values();
  Doubles gram = matrix(moments.input_products(), size);
  const double ridge = kRidge * gram.diagonal().mean();
  gram.diagonal().head(at(inputs)).array() += ridge;
  TokenPrediction prediction{std::vector<double>(size * values), inputs};
  Eigen::Map<Doubles>(prediction.coefficients.data(), at(size), at(values)) =
      gram.ldlt().solve(matrix(moments.input_rows(), values));
  return prediction;
}

LayerPrediction prediction_of(const TokenPrediction& all, const TransformGeometry& geometry, const LayerGroup& layers) {
  const std::size_t values = geometry.values(layers);
  const auto part =
      matrix(all.coefficients, geometry.values()).middleCols(at(geometry.values_before(layers.first)), at(values));
  LayerPrediction prediction{std::vector<double>(values), std::vector<double>(values * all.inputs)};
  Eigen::Map<Eigen::RowVectorXd>(prediction.mean.data(), at(values)) = part.row(at(all.inputs));
  Eigen::Map<Doubles>(prediction.map.data(), at(values), at(all.inputs)) = part.topRows(at(all.inputs)).transpose();
  return prediction;
}

std::vector<double> residual_covariance(const TransformMoments& moments, const LayerGroup& layers,
                                        const LayerPrediction& prediction) {
  const TransformGeometry& geometry = moments.geometry();
  const std::size_t inputs = geometry.inputs, values = geometry.values(layers);
  const auto cross =
      matrix(moments.input_rows(), geometry.values()).middleCols(at(geometry.values_before(layers.first)), at(values));
  Doubles maps(at(inputs + 1), at(values));
  maps.topRows(at(inputs)) = matrix(prediction.map, inputs).transpose();
  maps.row(at(inputs)) = Eigen::Map<const Eigen::RowVectorXd>(prediction.mean.data(), at(values));
  // Σ (x − Bᵀe)(x − Bᵀe)ᵀ = Σ x xᵀ − Cᵀ B − Bᵀ C + Bᵀ G B, with G = Σ e eᵀ and C = Σ e xᵀ
  std::vector<double> sums = moments.outer(layers);
  Eigen::Map<Doubles> residual(sums.data(), at(values), at(values));
  const Doubles half = matrix(moments.input_products(), inputs + 1) * maps / 2 - cross,
                change = maps.transpose() * half;
  residual += change + change.transpose();
  residual /= moments.tokens();
  return sums;
}

}  // namespace kvs::inline calibrate
