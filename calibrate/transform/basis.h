#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/transform/cache.h"
#include "calibrate/transform/moments.h"
#include "kernels/calibration_ops.h"

namespace kvs {

/// The Karhunen–Loève transform of a layer's rows in the metric of what their errors cost: with covariance Σ and cost
/// C = L Lᵀ, the coefficients are Λ^(−½) Uᵀ Lᵀ (x − mean) of Lᵀ Σ L = U Λ Uᵀ. They are uncorrelated and of unit
/// variance, and a squared error ε² of coefficient n costs variances[n] · ε².
struct TransformBasis {
  std::vector<double> mean;        // [value]
  std::vector<double> variances;   // [coefficient]: what leaving it away costs; descending in each row that is coded
  std::vector<double> analysis;    // [coefficient, value]
  std::vector<double> synthesis;   // [coefficient, value]: transposed
  std::vector<double> key_shares;  // [coefficient]: the keys' share of what an error of it costs
};

/// What errors of keys and of values cost, relative to the first-order estimate.
struct TransformScales {
  double keys = 1, values = 1;
};

/// Of the layer at position `n`. With TransformRows::kHead keys stay channels, of which neither what they cost nor how
/// they vary is taken together, and then come the coefficients of each head's values by themselves. The covariance's
/// diagonal grows by a thousandth, as do the diagonals of each head's costs in the mean; coefficients without variance
/// have some far below the others.
/// @throws Error kData naming the layer if nothing in it varies
TransformBasis transform_basis(CalibrationOps& ops, const TransformMoments& moments, std::size_t n,
                               const TransformScales& scales, TransformRows rows);

}  // namespace kvs
