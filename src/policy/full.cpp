#include <vector>

#include "core/error.h"
#include "policy/cache_policy.h"

namespace kvs {

namespace {

using States = BackendView<const float, 4>;

/// Keys and values of one layer, [member, kv_head, token, head_dim].
struct LayerCache {
  BackendTensor<float, 4> k, v;
};

/// `old` followed by `added` along the token axis; an `old` of one member serves every member of `added`.
BackendTensor<float, 4> joined(Backend& backend, const States& old, const States& added) {
  const auto [members, heads, tokens, head_dim] = added.shape();
  const std::size_t past = old.extent(2);
  BackendTensor<float, 4> result(backend, {members, heads, past + tokens, head_dim});
  for (std::size_t member = 0; member < members; ++member) {
    for (std::size_t head = 0; head < heads; ++head) {
      float* to = result.view().slice(member).slice(head).data();
      if (past > 0) {
        const States::Shape& shape = old.shape();
        const std::size_t from = ((shape[0] == 1 ? 0 : member) * heads + head) * past * head_dim;
        backend.copy(to, old.data() + from, past * head_dim * sizeof(float));
      }
      const std::size_t from = (member * heads + head) * tokens * head_dim;
      backend.copy(to + past * head_dim, added.data() + from, tokens * head_dim * sizeof(float));
    }
  }
  return result;
}

/// The uncompressed cache. Appending copies the layer's past once: O(past) per group of tokens.
class FullCache final : public CachePolicy {
 public:
  FullCache(Backend& backend, std::size_t layers) : backend_(&backend), layers_(layers) {}

  Past past(std::size_t layer) override {
    const LayerCache& cache = layers_.at(layer);
    return {cache.k.view(), cache.v.view()};
  }

  void append(std::size_t layer, States k, States v) override {
    LayerCache& cache = layers_.at(layer);
    const States::Shape& old = cache.k.view().shape();
    const bool fits = cache.k.view().empty() ||
                      ((old[0] == 1 || old[0] == k.extent(0)) && old[1] == k.extent(1) && old[3] == k.extent(3));
    if (!fits || v.shape() != k.shape()) {
      throw Error(ErrorCode::kInternal, "full cache", "states of another shape than the past");
    }
    cache.k = joined(*backend_, cache.k.view(), k);
    cache.v = joined(*backend_, cache.v.view(), v);
  }

  std::size_t tokens_seen() const noexcept override { return layers_.empty() ? 0 : layers_.front().k.view().extent(2); }

  std::size_t stored_reals() const noexcept override {
    std::size_t reals = 0;
    for (const LayerCache& cache : layers_) reals += cache.k.view().size() + cache.v.view().size();
    return reals;
  }

 private:
  Backend* backend_;
  std::vector<LayerCache> layers_;
};

}  // namespace

std::unique_ptr<CachePolicy> make_full_cache(Backend& backend, std::size_t layers) {
  return std::make_unique<FullCache>(backend, layers);
}

}  // namespace kvs
