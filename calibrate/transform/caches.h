#pragma once

#include <memory>
#include <vector>

#include "caches/cache_shape.h"
#include "calibrate/transform/cache.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// The caches of a transform config, which share its products. Layers that the config does not list keep everything.
class TransformCaches {
 public:
  TransformCaches(Backend& backend, const ModelConfig& model, const std::vector<TransformLayer>& layers);
  Cache make() const;

 private:
  CacheShape shape_;
  std::vector<std::shared_ptr<const TransformProducts>> products_;  // [layer]
};

}  // namespace kvs::inline calibrate
