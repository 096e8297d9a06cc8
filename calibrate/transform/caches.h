// SPDX-License-Identifier: Apache-2.0
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
  std::vector<std::shared_ptr<const TransformProducts>> products_;  // [layer]; of a group, with its first layer
  std::vector<std::vector<std::size_t>> groups_;                    // [group of several layers]
  bool predicts_ = false;  // some rows are predicted from the tokens' embeddings
};

}  // namespace kvs::inline calibrate
