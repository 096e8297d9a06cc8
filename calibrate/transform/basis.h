// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/transform/cache.h"
#include "calibrate/transform/moments.h"
#include "calibrate/transform/prediction.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// The Karhunen–Loève transform of the rows of a layer, or of a group of layers, in the metric of their errors' costs.
/// With covariance Σ and cost C = L Lᵀ, the coefficients are Λ^(−½) Uᵀ Lᵀ (x − mean), where Lᵀ Σ L = U Λ Uᵀ. They are
/// uncorrelated with unit variance, and a squared error ε² of coefficient n costs variances[n] · ε². Trailing
/// coefficients may be left out.
struct TransformBasis {
  std::vector<double> mean;        // [value]
  std::vector<double> map = {};    // [value, embedding channel], or empty: x is predicted as mean + map · e
  std::vector<double> variances;   // [coefficient]: cost of leaving it out; descending in each coded row
  std::vector<double> analysis;    // [coefficient, value]
  std::vector<double> synthesis;   // [coefficient, value]: transposed
  std::vector<double> key_shares;  // [coefficient]: the keys' share of the cost of its error
};

/// Cost of errors of keys and of values, relative to the first-order estimate.
struct TransformScales {
  double keys = 1, values = 1;
};

/// Computes the basis of layers that are coded together. With TransformRows::kHead, for a single layer, key
/// coefficients are the channels, with their costs and variances taken one by one; the coefficients of each head's
/// values follow. The covariance's diagonal is increased by a thousandth, and so are, on average, the diagonals of each
/// head's costs. Coefficients without variance get one far below the others.
/// @param scales  [layer of `layers`]
/// @param prediction  of all layers, or null; the basis is that of what it leaves
/// @param wanted  the number of coefficients by their variances; only with TransformRows::kLayer. Null: all.
/// @throws Error kData naming the first layer if nothing in them varies
TransformBasis transform_basis(CalibrationOps& ops, const TransformMoments& moments, const LayerGroup& layers,
                               std::span<const TransformScales> scales, TransformRows rows,
                               const TokenPrediction* prediction = nullptr, const WantedVectors& wanted = nullptr);

}  // namespace kvs::inline calibrate
