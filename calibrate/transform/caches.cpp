#include "calibrate/transform/caches.h"

#include "caches/full.h"

namespace kvs::inline calibrate {

TransformCaches::TransformCaches(Backend& backend, const ModelConfig& model, const std::vector<TransformLayer>& layers)
    : products_(model.layers()) {
  for (const TransformLayer& layer : layers)
    products_[layer.layer] = make_transform_products(backend, layer, {model.kv_heads(), model.head_dim()});
}

Cache TransformCaches::make() const {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (const auto& products : products_)
    layers.push_back(products ? make_transform_cache(products) : make_full_cache());
  return Cache(std::move(layers));
}

}  // namespace kvs::inline calibrate
