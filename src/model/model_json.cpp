#include "model/model_json.h"

#include "model/rope.h"

namespace kvs {

Json geometry_json(const ModelConfig& model, const std::string& sha256) {
  return {{"name", model.name},
          {"sha256", sha256},
          {"architecture", model.architecture},
          {"layers", model.layers},
          {"query_heads", model.query_heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim}};
}

Json rope_identity(const ModelConfig& model) {
  const RopeParameters& rope = model.ropes.front();
  Json json{{"theta", rope.theta},
            {"scaling", rope_scaling_json(rope.scaling)},
            {"pairing", "rotate-half"},
            {"rotary_dim", rope.rotary_dim}};
  if (model.ropes.size() > 1) json["kinds"] = ropes_json(model.ropes);
  return json;
}

Json rope_json(const ModelConfig& model, std::uint64_t window) {
  Json json = rope_identity(model), frequencies = Json::array(), factors = Json::array(), kinds = Json::array();
  for (const RopeParameters& rope : model.ropes) {
    const RopeAngles angles = rope_angles(rope, window);
    frequencies.push_back(angles.frequencies);
    factors.push_back(angles.factor);
  }
  for (std::size_t layer = 0; layer < model.layers; ++layer) kinds.push_back(model.rope_kind(layer));
  json["window"] = window;
  json["frequencies"] = std::move(frequencies);
  json["factors"] = std::move(factors);
  json["layer_kinds"] = std::move(kinds);
  return json;
}

Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window) {
  Json json = geometry_json(model, sha256);
  json["rope"] = rope_json(model, window);
  return json;
}

}  // namespace kvs
