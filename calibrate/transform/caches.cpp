// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/caches.h"

#include <map>
#include <utility>

#include "caches/full.h"
#include "calibrate/transform/token_inputs.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {

TransformCaches::TransformCaches(Backend& backend, const ModelConfig& model, const std::vector<TransformLayer>& layers)
    : shape_(cache_shape(model)), products_(model.layers()) {
  for (const TransformLayer& layer : layers) {
    products_[layer.layer] = make_transform_products(backend, layer, transform_shape(model, layer.layer));
    predicts_ = predicts_ || !layer.prediction.empty();
    if (layer.others.empty()) continue;
    groups_.push_back({layer.layer});
    groups_.back().insert(groups_.back().end(), layer.others.begin(), layer.others.end());
  }
}

Cache TransformCaches::make() const {
  const auto inputs = predicts_ ? std::make_shared<TokenInputs>() : nullptr;
  std::map<std::size_t, std::unique_ptr<LayerCache>> of_groups;  // [layer]
  for (const std::vector<std::size_t>& layers : groups_) {
    std::vector<std::unique_ptr<LayerCache>> caches = make_group_caches(products_[layers.front()], inputs);
    for (std::size_t n = 0; n < layers.size(); ++n) of_groups[layers[n]] = std::move(caches[n]);
  }
  return make_layers(shape_, [&](std::size_t layer) {
    if (const auto shared = of_groups.find(layer); shared != of_groups.end()) return std::move(shared->second);
    return products_[layer] ? make_transform_cache(products_[layer], CodedSides::kBoth, inputs)
                            : make_full_cache(plain_types(shape_.layers[layer]));
  });
}

}  // namespace kvs::inline calibrate
