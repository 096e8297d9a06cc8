#include "calibrate/elitekv/obstacles.h"

#include "core/error.h"

namespace kvs::inline calibrate {

std::string ropelite_obstacle(const ModelConfig& model) {
  if (model.unrotated_layers() > 0) return unrotated_text(model);
  return model.chunks() > 0 ? std::string() : "the model rotates no channel";
}

std::string disjoint_obstacle(const ModelConfig& model) {
  if (model.chunks() >= model.kv_heads()) return ropelite_obstacle(model);
  return "found " + std::to_string(model.kv_heads()) + " KV heads and " + std::to_string(model.chunks()) +
         " RoPE chunks, expected at least a chunk for each head";
}

std::string factor_obstacle(const ModelConfig& model) {
  if (model.arithmetic.qk_norm == QkNorm::kNone) return {};
  return "found a model that normalises its keys after their projection (" + model.architecture +
         ": QK-norm), expected one whose keys are linear in the layer's input: low-rank factors of W_k are not defined "
         "for it, RoPElite alone is";
}

void refuse_obstacle(const std::string& obstacle, std::string_view part, const ModelConfig& model) {
  if (!obstacle.empty())
    throw Error(ErrorCode::kUnsupported, model.name, "not possible with " + std::string(part) + ": " + obstacle);
}

}  // namespace kvs::inline calibrate
