// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/caches.h"

#include "caches/full.h"
#include "calibrate/elitekv/source.h"
#include "model/cache_shape.h"
#include "model/rope_angles.h"

namespace kvs::inline calibrate {

std::vector<EliteLayer> load_elite_config(const Json& json, const std::filesystem::path& path,
                                          const ModelSource& source) {
  const EliteSource config(json, path, source);
  std::vector<EliteLayer> result;
  for (std::size_t n = 0; n < config.config().layers.size(); ++n) result.push_back(config.layer(n));
  return result;
}

EliteLayerShape elite_layer_shape(const ModelConfig& model, std::size_t layer, std::size_t tokens) {
  const AttentionConfig& attention = model.layer[layer].attention;
  return {.query_heads = attention.query_heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .chunks = model.rotary_dim(layer) / 2,
          .d_model = model.d_model,
          .rope_factor = static_cast<float>(rope_angles(model.rope(layer), tokens).factor)};
}

EliteCaches::EliteCaches(Backend& backend, const ModelConfig& model, const std::vector<EliteLayer>& layers,
                         std::size_t tokens)
    : shape_(cache_shape(model)), products_(model.layers()) {
  for (const EliteLayer& layer : layers)
    products_[layer.layer] = make_elite_products(backend, layer, elite_layer_shape(model, layer.layer, tokens));
}

Cache EliteCaches::make(const std::vector<KvTypes>& stores) const {
  return make_layers(shape_, [&](std::size_t layer) {
    const KvTypes types = stores.empty() ? plain_types(shape_.layers[layer]) : stores[layer];
    return products_[layer] ? make_elitekv_cache(products_[layer], types) : make_full_cache(types);
  });
}

}  // namespace kvs::inline calibrate
