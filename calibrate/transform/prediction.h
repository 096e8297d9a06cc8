// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/transform/moments.h"

namespace kvs::inline calibrate {

/// A linear map from a token's embedding to its rows in all layers: x is predicted as mean + map · e. Fitted by least
/// squares with a ridge of a thousandth of the embeddings' mean square; the mean has none.
struct TokenPrediction {
  std::vector<double> coefficients;  // [embedding channel, then 1; value of all layers]
  std::size_t inputs = 0;            // channels of an embedding
};

/// @param moments  of a geometry with inputs
TokenPrediction token_prediction(const TransformMoments& moments);

/// The part of a prediction that belongs to some layers.
struct LayerPrediction {
  std::vector<double> mean;  // [value]
  std::vector<double> map;   // [value, embedding channel]
};
LayerPrediction prediction_of(const TokenPrediction& all, const TransformGeometry& geometry, const LayerGroup& layers);

/// Returns the covariance of what a prediction leaves of the rows of layers that are all in one group.
std::vector<double> residual_covariance(const TransformMoments& moments, const LayerGroup& layers,
                                        const LayerPrediction& prediction);

}  // namespace kvs::inline calibrate
