// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/measured_gains.h"

#include "calibrate/common/output_weights.h"

namespace kvs::inline calibrate {
namespace {

StateWeights value_weights(const ModelSource& model, std::size_t layer) {
  const ModelConfig& config = model.config();
  AttentionMaps maps;
  const AttentionConfig& attention = config.layer[layer].attention;
  maps.query_heads = attention.query_heads;
  maps.kv_heads = attention.kv_heads;
  maps.head_dim = attention.head_dim;
  maps.d_model = config.d_model;
  maps.output = model.projection(layer, 'o');
  return output_gram_weights(output_grams(maps), attention.kv_heads, attention.head_dim);
}

}  // namespace

ModelGains measured_gains(const MomentSource& source, std::size_t documents, const std::vector<std::size_t>& layers,
                          const ModelSource* model) {
  const MomentShape& shape = source.shape();
  ModelGains gains = model_gains(source, documents, [&](std::size_t layer) {
    GainWeights weights;
    if (shape.queries)
      weights[StateKind::kKPre] = weights[StateKind::kKPost] = query_weights(source.moments()[layer], shape);
    if (model != nullptr && shape.states.contains(StateKind::kV))
      weights[StateKind::kV] = value_weights(*model, layers[layer]);
    return weights;
  });
  if (!shape.queries) gains.left_out.emplace_back("weights of keys: the capture holds no q_pre");
  if (model == nullptr) gains.left_out.emplace_back("weights of values: a capture holds no output projections");
  return gains;
}

}  // namespace kvs::inline calibrate
