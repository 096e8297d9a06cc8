// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/cache.h"

#include <map>
#include <utility>

#include "caches/full.h"
#include "calibrate/kvtc/pooled_tokens.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {
namespace {

/// The cache of one layer of a pool.
class KvtcCache final : public LayerCache {
 public:
  KvtcCache(std::shared_ptr<PooledTokens> pool, std::size_t layer) : pool_(std::move(pool)), layer_(layer) {}

  std::size_t max_tokens_per_call() const noexcept override { return pool_->room(layer_); }
  void attend(LayerStates& states, const Operand& out) override { pool_->attend(layer_, states, out); }
  CacheBytes bytes() const noexcept override { return pool_->bytes(layer_); }
  CacheBytes peak() const noexcept override { return pool_->peak(layer_); }

 private:
  std::shared_ptr<PooledTokens> pool_;
  std::size_t layer_;
};

}  // namespace

std::vector<std::unique_ptr<LayerCache>> make_kvtc_caches(const std::shared_ptr<const KvtcProducts>& products) {
  const auto pool = std::make_shared<PooledTokens>(products);
  std::vector<std::unique_ptr<LayerCache>> caches;
  caches.reserve(pool->layers());
  for (std::size_t layer = 0; layer < pool->layers(); ++layer)
    caches.push_back(std::make_unique<KvtcCache>(pool, layer));
  return caches;
}

KvtcCaches::KvtcCaches(Backend& backend, const ModelConfig& model, const std::vector<KvtcPool>& pools,
                       const KvtcTokens& tokens)
    : shape_(cache_shape(model)) {
  for (const KvtcPool& pool : pools) {
    std::vector<KvtcHeads> heads;
    heads.reserve(pool.layers.size());
    for (const std::size_t layer : pool.layers)
      heads.push_back({shape_.layers[layer].kv_heads, shape_.layers[layer].head_dim});
    pools_.push_back(std::make_shared<const KvtcProducts>(backend, pool, tokens, std::move(heads)));
  }
}

Cache KvtcCaches::make() const {
  std::map<std::size_t, std::unique_ptr<LayerCache>> coded;  // [layer]
  for (const std::shared_ptr<const KvtcProducts>& pool : pools_) {
    std::vector<std::unique_ptr<LayerCache>> caches = make_kvtc_caches(pool);
    for (std::size_t n = 0; n < caches.size(); ++n) coded[pool->pool().layers[n]] = std::move(caches[n]);
  }
  return make_layers(shape_, [&](std::size_t layer) {
    const auto found = coded.find(layer);
    return found != coded.end() ? std::move(found->second) : make_full_cache(plain_types(shape_.layers[layer]));
  });
}

}  // namespace kvs::inline calibrate
