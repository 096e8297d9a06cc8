#include "calibrate/transform/caches.h"

#include "caches/full.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {

TransformCaches::TransformCaches(Backend& backend, const ModelConfig& model, const std::vector<TransformLayer>& layers)
    : shape_(cache_shape(model)), products_(model.layers()) {
  for (const TransformLayer& layer : layers)
    products_[layer.layer] = make_transform_products(backend, layer, transform_shape(model, layer.layer));
}

Cache TransformCaches::make() const {
  return make_layers(shape_, [this](std::size_t layer) {
    return products_[layer] ? make_transform_cache(products_[layer])
                            : make_full_cache(plain_types(shape_.layers[layer]));
  });
}

}  // namespace kvs::inline calibrate
