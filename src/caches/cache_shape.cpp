// SPDX-License-Identifier: Apache-2.0
#include "caches/cache_shape.h"

#include <utility>

namespace kvs::inline caches {
namespace {

/// The rows of another layer, as a reader of them sees them. Its queries choose nothing: methods that choose rows by
/// queries are not defined for such models.
class ReaderCache final : public LayerCache {
 public:
  explicit ReaderCache(std::unique_ptr<LayerCache> rows) : rows_(std::move(rows)) {}

  std::size_t max_tokens_per_call() const noexcept override { return rows_->max_tokens_per_call(); }
  void attend(LayerStates& states, const Operand& out) override { rows_->attend(states, out); }
  void begin_prefix(std::size_t tokens) override { rows_->begin_prefix(tokens); }
  void end_prefix(Backend& backend) override { rows_->end_prefix(backend); }
  CacheBytes bytes() const noexcept override { return without_stored(rows_->bytes()); }
  CacheBytes peak() const noexcept override { return without_stored(rows_->peak()); }
  std::size_t positions(std::size_t tokens) const noexcept override { return rows_->positions(tokens); }

 private:
  static CacheBytes without_stored(CacheBytes bytes) noexcept {
    bytes.stored = 0;
    return bytes;
  }

  std::unique_ptr<LayerCache> rows_;
};

}  // namespace

Cache make_layers(const CacheShape& shape, const std::function<std::unique_ptr<LayerCache>(std::size_t layer)>& make,
                  const Prefix& prefix) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    const LayerShape& one = shape.layers[layer];
    if (one.kv_layer)
      layers.push_back(std::make_unique<ReaderCache>(make(*one.kv_layer)));
    else
      layers.push_back(one.has_cache() ? make(layer) : nullptr);
  }
  return Cache(std::move(layers), prefix);
}

}  // namespace kvs::inline caches
