// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/registry.h"
#include "tests/kernels/support.h"

namespace kvs::test {

/// The cache of a method's third layer (some methods leave the first two unchanged), as `--set SETTINGS` makes it.
inline std::unique_ptr<LayerCache> layer_cache(const std::string& method, const std::vector<std::string>& settings) {
  Parameters parameters({{parse_settings(settings, "settings"), "", ErrorCode::kUsage}}, 3);
  parameters.select(2);
  return find_method(method)->make(parameters, {.index = 2, .shape = {}});
}

/// Feeds a cache tokens of states, whose first chunk is rotated by position · `angle`. With queries of zeros each
/// token's attention is the mean of all values that it reads.
class LayerHarness {
 public:
  LayerHarness(LayerCache& cache, std::size_t kv_heads, std::size_t head_dim, std::size_t window = 0, float angle = 0)
      : cache_(&cache), kv_heads_(kv_heads), head_dim_(head_dim), window_(window), angle_(angle) {}

  Backend& backend() const noexcept { return *backend_; }
  /// @param backend  outlives the cache
  void use(Backend& backend) noexcept { backend_ = &backend; }

  /// k, v: [kv_head, token, head_dim], `all` tokens, of which `count` from `token` on are fed as one group; queries are
  /// (query, 0, 0, …).
  /// @return what its queries read, [token, kv_head, head_dim]
  std::vector<float> feed(const std::vector<float>& k, const std::vector<float>& v, std::size_t all, std::size_t token,
                          float query = 0, std::size_t count = 1) {
    const auto row = [&](const std::vector<float>& states) {
      std::vector<float> values;
      for (std::size_t head = 0; head < kv_heads_; ++head) {
        const auto from = states.begin() + static_cast<std::ptrdiff_t>((head * all + token) * head_dim_);
        values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(count * head_dim_));
      }
      return uploaded<4>(*backend_, values, {1, kv_heads_, count, head_dim_});
    };
    const auto keys = row(k), values = row(v);
    std::vector<float> asked(kv_heads_ * count * head_dim_);
    for (std::size_t n = 0; n < kv_heads_ * count; ++n) asked[n * head_dim_] = query;
    const auto queries = uploaded<4>(*backend_, asked, {1, kv_heads_, count, head_dim_});
    const std::size_t positions = std::max(all, cache_->positions(all));
    std::vector<float> cosines, sines;
    for (std::size_t position = 0; position < positions; ++position) {
      cosines.push_back(std::cos(static_cast<float>(position) * angle_));
      sines.push_back(std::sin(static_cast<float>(position) * angle_));
    }
    const auto cosine = uploaded<2>(*backend_, cosines, {positions, 1}),
               sine = uploaded<2>(*backend_, sines, {positions, 1});
    const OwnedOperand out(*backend_, count, kv_heads_ * head_dim_);
    LayerStates states{.backend = *backend_,
                       .layer = 0,
                       .first_position = token,
                       .rope = {cosine.view(), sine.view()},
                       .x = {},
                       .q = queries.view(),
                       .k = keys.view(),
                       .v = values.view(),
                       .window = window_};
    cache_->attend(states, out);
    return out.values();
  }

  /// Feeds all tokens of a text, as many at once as the cache takes.
  void feed_all(const std::vector<float>& k, const std::vector<float>& v) {
    const std::size_t all = k.size() / kv_heads_ / head_dim_;
    for (std::size_t token = 0, count = 0; token < all; token += count)
      feed(k, v, all, token, 0, count = std::min(cache_->max_tokens_per_call(), all - token));
  }

 private:
  static Backend& cpu() {  // outlives the caches that hold its memory
    static const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32, 1);
    return *backend;
  }

  Backend* backend_ = &cpu();
  LayerCache* cache_;
  std::size_t kv_heads_, head_dim_, window_;
  float angle_;
};

}  // namespace kvs::test
