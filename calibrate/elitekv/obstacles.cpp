// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/obstacles.h"

#include <algorithm>

#include "calibrate/common/norm_order.h"

namespace kvs::inline calibrate {

std::string ropelite_obstacle(const ModelConfig& model) {
  if (model.has_latents())
    return "found latent attention, whose heads share one key that rotates; expected keys of each head: RoPElite "
           "chooses the chunks of a head, and J-LRD makes a latent of its own";
  if (model.unrotated_layers() > 0) return unrotated_text(model);
  if (std::string obstacle = norm_order_obstacle(model); !obstacle.empty()) return obstacle;
  if (!model.layers_without_cache().empty())
    return "found layers without a KV cache of their own, expected one in every layer: all layers share r and the "
           "latent";
  if (!model.has_equal_layers())
    return "found layers with heads of several sizes, expected one size: r and the latent's size are those of a layer";
  return model.chunks() > 0 ? std::string() : "the model rotates no channel";
}

std::string disjoint_obstacle(const ModelConfig& model) {
  if (model.chunks() >= model.kv_heads()) return ropelite_obstacle(model);
  return "found " + std::to_string(model.kv_heads()) + " KV heads and " + std::to_string(model.chunks()) +
         " RoPE chunks, expected at least a chunk for each head";
}

std::string factor_obstacle(const ModelConfig& model) {
  const bool limited =
      std::ranges::any_of(model.layer, [](const LayerConfig& each) { return each.attention.clip > 0; });
  if (model.arithmetic.value_norm)
    return "found a model that normalises its keys and values after their projection (" + model.architecture +
           ": QK-norm, V-norm), expected one whose keys and values are linear in the layer's input: low-rank factors "
           "of "
           "W_k and W_v are not defined for it";
  if (model.arithmetic.qk_norm == QkNorm::kNone && !limited) return {};
  return "found a model that " + std::string(limited ? "limits" : "normalises") + " its keys after their projection (" +
         model.architecture + (limited ? ": clip_qkv" : ": QK-norm") +
         "), expected one whose keys are linear in the layer's input: low-rank factors of W_k are not defined "
         "for it, RoPElite alone is";
}

}  // namespace kvs::inline calibrate
