// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/cost.h"

#include <algorithm>

#include "calibrate/kvtc/moments.h"
#include "model/work.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kSidesOfPool = 2;           // keys and values
constexpr double kDecomposition = 12;        // flops over values³: Gram matrix, tridiagonal form, vectors, product
constexpr double kDecompositionSquares = 7;  // matrices in double: covariance, Gram matrix, vectors twice, results

}  // namespace

double kvtc_flops(const ModelConfig& model, std::size_t documents, std::size_t tokens) {
  double flops = static_cast<double>(documents) * forward_flops(model, static_cast<double>(tokens));
  for (const KvtcLayers& pool : kvtc_pools(model)) {
    const auto values = static_cast<double>(pool.values());
    flops += kSidesOfPool * values * values * (static_cast<double>(documents * tokens) + kDecomposition * values);
  }
  return flops;
}

double kvtc_memory(const ModelConfig& model) {
  double bytes = 0, most = 0;
  for (const KvtcLayers& pool : kvtc_pools(model)) {
    const auto values = static_cast<double>(pool.values()), square = values * values;
    bytes += kSidesOfPool * sizeof(double) * (square + static_cast<double>(KvtcMoments::kSamples) * values) +
             kSidesOfPool * sizeof(float) * square;
    most = std::max(most, kDecompositionSquares * sizeof(double) * square);
  }
  return bytes + most;
}

}  // namespace kvs::inline calibrate
