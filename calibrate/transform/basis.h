#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/transform/cache.h"
#include "calibrate/transform/moments.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// The Karhunen–Loève transform of a layer's rows in the metric of their errors' costs. With covariance Σ and cost C =
/// L Lᵀ, the coefficients are Λ^(−½) Uᵀ Lᵀ (x − mean), where Lᵀ Σ L = U Λ Uᵀ. They are uncorrelated with unit variance,
/// and a squared error ε² of coefficient n costs variances[n] · ε².
struct TransformBasis {
  std::vector<double> mean;        // [value]
  std::vector<double> variances;   // [coefficient]: cost of leaving it out; descending in each coded row
  std::vector<double> analysis;    // [coefficient, value]
  std::vector<double> synthesis;   // [coefficient, value]: transposed
  std::vector<double> key_shares;  // [coefficient]: the keys' share of the cost of its error
};

/// Cost of errors of keys and of values, relative to the first-order estimate.
struct TransformScales {
  double keys = 1, values = 1;
};

/// Computes the basis of the layer at index `n`. With TransformRows::kHead, key coefficients are the channels, with
/// their costs and variances taken one by one; the coefficients of each head's values follow. The covariance's diagonal
/// is increased by a thousandth, and so are, on average, the diagonals of each head's costs. Coefficients without
/// variance get one far below the others.
/// @throws Error kData naming the layer if nothing in it varies
TransformBasis transform_basis(CalibrationOps& ops, const TransformMoments& moments, std::size_t n,
                               const TransformScales& scales, TransformRows rows);

}  // namespace kvs::inline calibrate
