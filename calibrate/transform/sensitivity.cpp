// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/sensitivity.h"

#include <numeric>

#include "caches/full.h"
#include "calibrate/common/layer_losses.h"
#include "core/interrupt.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {
namespace {

enum Candidate : std::size_t { kFull, kKeys, kValues };

double mean(const std::vector<double>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace

std::vector<TransformScales> coding_losses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                           const std::vector<TransformLayer>& layers,
                                           std::vector<TransformScales> losses,
                                           const std::function<void(std::span<const TransformScales>)>& done) {
  const ModelConfig& model = decoder.model().config();
  const CacheShape shape = cache_shape(model);
  std::vector<std::size_t> indices;
  std::vector<std::shared_ptr<const TransformProducts>> products;
  for (const TransformLayer& layer : layers) {
    indices.push_back(layer.layer);
    products.push_back(make_transform_products(decoder.model().backend(), layer, transform_shape(model, layer.layer)));
  }
  LayerLosses measured(
      decoder, documents, indices, [&](std::size_t n, std::size_t candidate) -> std::unique_ptr<LayerCache> {
        if (candidate == kFull) return make_full_cache(plain_types(shape.layers[indices[n]]));
        return make_transform_cache(products[n], candidate == kKeys ? CodedSides::kKeys : CodedSides::kValues);
      });
  for (std::size_t n = losses.size(); n < layers.size(); ++n) {
    done(losses);
    check_interrupt();
    LayerChoice choice(layers.size(), kFull);
    choice[n] = kKeys;
    const double keys = mean(measured.divergence(choice));
    choice[n] = kValues;
    losses.push_back({keys, mean(measured.divergence(choice))});
  }
  done(losses);
  return losses;
}

}  // namespace kvs::inline calibrate
