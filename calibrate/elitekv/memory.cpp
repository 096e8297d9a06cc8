// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/memory.h"

#include <algorithm>

#include "calibrate/common/attention_pairs.h"
#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/outputs.h"

namespace kvs::inline calibrate {
namespace {

/// Sizes of a layer's data, by the quantities on which they depend.
struct LayerSizes {
  LayerSizes(const ModelConfig& model, const EliteConfig& config, EliteAllocation size)
      : d_model(model.d_model),
        queries(model.query_heads() * model.head_dim()),
        values(model.kv_heads() * model.head_dim()),
        rows(2 * values - 2 * size.r * model.kv_heads()),
        width(2 * size.r * model.kv_heads() + size.d_ckv),
        factors((d_model + rows) * size.d_ckv + (config.fitted_queries ? queries * d_model : 0)) {}

  /// Returns the values of a layer's factors on the host, and of W_v.
  std::size_t held() const noexcept { return factors + values * d_model; }

  std::size_t d_model, queries, values;
  std::size_t rows;     // rows that the factors replace
  std::size_t width;    // of a row of the cache
  std::size_t factors;  // in the file
};

double sums(const ModelConfig& model, const EliteConfig& config) {
  const std::size_t features = config.by_attention ? AttentionPairs::features(model.chunks()) : model.chunks(),
                    moments = config.whitening != Whitening::kOff ? model.d_model * model.d_model : 0;
  return sizeof(double) *
         static_cast<double>(config.layers.size() * (model.query_heads() * features * features + moments));
}

/// W_q, W_v and W_o, the rows and the inputs' factor in double, and the larger of two: output_weights() holds W_q and
/// W_o again; factorise() holds the rows joined, weighted, in the SVD and in its vectors.
double factorising(const LayerSizes& n) {
  const std::size_t maps = (2 * n.queries + n.values) * n.d_model, held = n.rows * n.d_model + n.d_model * n.d_model,
                    weighing = (2 * n.queries + n.values) * n.d_model, svd = 4 * n.rows * n.d_model;
  return static_cast<double>(sizeof(float) * (maps + n.factors) + sizeof(double) * (held + std::max(weighing, svd)));
}

/// A layer's factors on the host, and its products: compress, expand, absorb and restore.
double caching(const LayerSizes& n, const EliteConfig& config, DType compute) {
  const std::size_t products =
      n.width * (n.d_model + 4 * n.values) + (config.fitted_queries ? n.queries * n.d_model : 0);
  return static_cast<double>(sizeof(float) * n.held() + item_size(compute) * products);
}

/// Sums of outputs, the outputs, and for one layer the memory of the solver.
double fitting_outputs(const ModelConfig& model, const LayerSizes& n, const EliteConfig& config, DType compute) {
  const auto layers = static_cast<double>(std::min(config.layers.size(), outputs_at_once(model))),
             square = static_cast<double>(n.queries * n.queries);
  return layers * (output_sum_bytes(model) + sizeof(float) * square + caching(n, config, compute)) +
         5 * sizeof(double) * square;
}

}  // namespace

double elite_layer_bytes(const ModelConfig& model, const EliteConfig& config, EliteAllocation size) {
  return static_cast<double>(sizeof(float) * LayerSizes(model, config, size).held());
}

double elite_memory(const ModelConfig& model, const EliteConfig& config, DType compute, bool tried) {
  double most = 0;
  if (config.rank) {
    const LayerSizes sizes(model, config, {config.r, *config.rank});
    most = factorising(sizes);
    if (config.fitted_outputs) most = std::max(most, fitting_outputs(model, sizes, config, compute));
    if (tried) most = std::max(most, static_cast<double>(config.layers.size()) * caching(sizes, config, compute));
  }
  return sums(model, config) + most;
}

}  // namespace kvs::inline calibrate
