#include "model/model_json.h"

#include "model/rope_angles.h"
#include "model/rope_json.h"

namespace kvs::inline model {

ModelRecord model_record(const ModelConfig& model, const std::string& sha256, std::uint64_t window) {
  const RopeParameters& first = model.ropes.front();
  ModelRecord record{.name = model.name,
                     .sha256 = sha256,
                     .architecture = model.architecture,
                     .layers = model.layers(),
                     .query_heads = model.query_heads(),
                     .kv_heads = model.kv_heads(),
                     .head_dim = model.head_dim(),
                     .rope = {.theta = first.theta,
                              .scaling = rope_scaling_json(first.scaling),
                              .rotary_dim = first.rotary_dim,
                              .window = window}};
  if (model.ropes.size() > 1) record.rope.kinds = ropes_json(model.ropes);
  for (const RopeParameters& rope : model.ropes) {
    RopeAngles angles = rope_angles(rope, window);
    record.rope.frequencies.push_back(std::move(angles.frequencies));
    record.rope.factors.push_back(angles.factor);
  }
  for (const LayerConfig& layer : model.layer) record.rope.layer_kinds.push_back(layer.attention.rope);
  return record;
}

Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window) {
  return to_json(model_record(model, sha256, window));
}

}  // namespace kvs::inline model
