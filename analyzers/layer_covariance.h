// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "analyzers/matrix.h"
#include "analyzers/moments.h"

namespace kvs::inline analyzers {

/// Covariances of a layer's heads, about their means or, as second moments, about zero. covariance() and
/// log2_determinant() add noise() to the diagonal (kFinestBits). A constant state is a multiple of the identity, so
/// that no step has a gain.
class LayerCovariance {
 public:
  /// @param tokens  number of tokens summed
  LayerCovariance(const LayerMoments& moments, const MomentShape& shape, std::size_t tokens, bool mean_removed);

  const MomentShape& shape() const noexcept { return *shape_; }
  double noise(StateKind state) const noexcept { return noise_[state]; }
  /// Returns E[x²] of a head's channels, with the noise.
  Eigen::ArrayXd second_moments(StateKind state, std::size_t head) const;
  /// Returns [head_dim, head_dim] of one head, with the noise.
  Matrix covariance(StateKind state, std::size_t head) const;
  /// Returns the symmetric part of E[x_t x_{t+lag}ᵀ] of k_pre or v, without the noise.
  Matrix lagged(StateKind state, std::size_t head, std::size_t lag) const;
  /// Returns log2 of the determinant over `count` whole heads from `first` on, with the noise. @throws Error kData if
  /// the matrix has no Cholesky factor.
  double log2_determinant(std::size_t first, std::size_t count) const;

 private:
  Eigen::VectorXd mean(std::size_t head) const;
  Eigen::Map<const Matrix> products(std::size_t left, std::size_t right) const;
  Matrix block(std::size_t left, std::size_t right) const;

  const LayerMoments* moments_;
  const MomentShape* shape_;
  double tokens_;
  bool mean_removed_;
  ByState<double> noise_{};
  ByState<bool> constant_{};
};

}  // namespace kvs::inline analyzers
