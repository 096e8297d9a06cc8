// SPDX-License-Identifier: Apache-2.0
#include "analyzers/layer_covariance.h"

#include <algorithm>
#include <cmath>

#include "analyzers/coding_gain.h"
#include "core/error.h"

namespace kvs::inline analyzers {
namespace {

/// A state counts as constant if its variance is below this share of its second moment: the rest is rounding.
constexpr double kConstant = 1e-10;

}  // namespace

LayerCovariance::LayerCovariance(const LayerMoments& moments, const MomentShape& shape, std::size_t tokens,
                                 bool mean_removed)
    : moments_(&moments), shape_(&shape), tokens_(static_cast<double>(tokens)), mean_removed_(mean_removed) {
  for (const StateKind state : shape.states) {
    double variance = 0, second_moment = 0;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const std::size_t at = shape.first_head(state) + head;
      variance += block(at, at).trace();
      second_moment += products(at, at).trace() / tokens_;
    }
    constant_[state] = variance <= kConstant * second_moment;
    noise_[state] = constant_[state]
                        ? 1
                        : variance * std::pow(4, -kFinestBits) / static_cast<double>(shape.kv_heads * shape.head_dim);
  }
}

Eigen::VectorXd LayerCovariance::mean(std::size_t head) const {
  return Eigen::Map<const Eigen::VectorXd>(moments_->sum.data() + head * shape_->head_dim, to_index(shape_->head_dim)) /
         tokens_;
}

Eigen::Map<const Matrix> LayerCovariance::products(std::size_t left, std::size_t right) const {
  const bool rotated = left >= shape_->whole_heads();
  const double* const data = rotated ? moments_->rotated.data() + (left - shape_->whole_heads()) * shape_->square()
                                     : moments_->pairs.data() + (left * (left + 1) / 2 + right) * shape_->square();
  return {data, to_index(shape_->head_dim), to_index(shape_->head_dim)};
}

Matrix LayerCovariance::block(std::size_t left, std::size_t right) const {
  Matrix result = products(left, right) / tokens_;
  if (mean_removed_) result.noalias() -= mean(left) * mean(right).transpose();
  return result;
}

Eigen::ArrayXd LayerCovariance::second_moments(StateKind state, std::size_t head) const {
  const std::size_t at = shape_->first_head(state) + head;
  if (constant_[state]) return Eigen::ArrayXd::Ones(to_index(shape_->head_dim));
  return products(at, at).diagonal().array() / tokens_ + noise_[state];
}

Matrix LayerCovariance::covariance(StateKind state, std::size_t head) const {
  const std::size_t at = shape_->first_head(state) + head;
  if (constant_[state]) return Matrix::Identity(to_index(shape_->head_dim), to_index(shape_->head_dim));
  Matrix result = block(at, at);
  result.diagonal() = result.diagonal().cwiseMax(0.0).array() + noise_[state];
  return result;
}

// About the mean μ of all tokens, Σ (x_t − μ)(x_{t+τ} − μ)ᵀ over the n pairs of a lag needs the means of both ends of
// the pairs. One is over all tokens but the last τ, the other over all but the first τ.
Matrix LayerCovariance::lagged(StateKind state, std::size_t head, std::size_t lag) const {
  const std::size_t at = shape_->first_head(state) + head;
  const Eigen::Index size = to_index(shape_->head_dim);
  if (constant_[state]) return Matrix::Zero(size, size);
  if (lag == 0) return block(at, at);
  const std::size_t row = at * (shape_->lags() - 1);
  const double* from = moments_->lags.data() + (row + lag - 1) * shape_->triangle();
  const double pairs = tokens_ * static_cast<double>(shape_->counted() - lag) / static_cast<double>(shape_->counted());
  Matrix result(size, size);
  for (Eigen::Index i = 0; i < size; ++i)
    for (Eigen::Index j = 0; j <= i; ++j) result(i, j) = result(j, i) = *from++ / pairs;
  if (!mean_removed_) return result;
  const Eigen::VectorXd centre = mean(at);
  Eigen::VectorXd ends = 2 * tokens_ * centre;  // Σ x_t + Σ x_{t+τ}
  for (std::size_t edge = 0; edge < 2 * lag; ++edge)
    ends -= Eigen::Map<const Eigen::VectorXd>(moments_->edges.data() + (2 * row + edge) * shape_->head_dim, size);
  ends /= 2 * pairs;
  return result - centre * ends.transpose() - ends * centre.transpose() + centre * centre.transpose();
}

double LayerCovariance::log2_determinant(std::size_t first, std::size_t count) const {
  const Eigen::Index size = to_index(shape_->head_dim);
  Eigen::MatrixXd lower(to_index(count) * size, to_index(count) * size);
  for (std::size_t left = 0; left < count; ++left)
    for (std::size_t right = 0; right <= left; ++right)
      lower.block(to_index(left) * size, to_index(right) * size, size, size) = block(first + left, first + right);
  for (const StateKind state : shape_->states) {
    for (std::size_t head = 0; head < shape_->kv_heads; ++head) {
      const std::size_t at = shape_->first_head(state) + head;
      if (at < first || at >= first + count) continue;
      const Eigen::Index place = to_index(at - first) * size;
      if (constant_[state]) {
        lower.middleRows(place, size).setZero();
        lower.middleCols(place, size).setZero();
      }
      lower.diagonal().segment(place, size).array() += noise_[state];
    }
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(lower);
  if (factor.info() != Eigen::Success)
    throw Error(ErrorCode::kData, "coding gain", "a layer's covariance is not positive definite");
  return 2 * factor.matrixLLT().diagonal().array().log2().sum();
}

}  // namespace kvs::inline analyzers
