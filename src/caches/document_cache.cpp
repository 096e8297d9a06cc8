// SPDX-License-Identifier: Apache-2.0
#include "caches/document_cache.h"

#include <algorithm>

#include "caches/token_rows.h"
#include "core/error.h"

namespace kvs::inline caches {
namespace {

/// Computes the attention of tokens [first, first + count); copies their states unless they are all tokens.
void attend_group(LayerCache& cache, const LayerStates& states, std::size_t first, std::size_t count,
                  const Operand& out) {
  LayerStates group = states;
  if (count == states.tokens()) return cache.attend(group, out);
  Backend& backend = states.backend;
  const auto part = [&](const BackendView<float, 4>& x) { return RowBuffer::part_of(backend, x, first, count); };
  const RowBuffer::Part q = part(states.q), k = part(states.k), v = part(states.v);
  group.first_position = states.first_position + first;
  group.x = operand_rows(backend, states.x, first, count);
  group.q = q.view();
  group.k = k.view();
  group.v = v.view();
  cache.attend(group, operand_rows(backend, out, first, count));
}

class DocumentCache final : public LayerCache {
 public:
  DocumentCache(std::unique_ptr<LayerCache> cache, const Prefix& prefix) : cache_(std::move(cache)), prefix_(prefix) {}

  void attend(LayerStates& states, const Operand& out) override { attend_document(*cache_, prefix_, states, out); }
  CacheBytes bytes() const noexcept override { return cache_->bytes(); }
  std::size_t positions(std::size_t tokens) const noexcept override { return cache_->positions(tokens); }

 private:
  std::unique_ptr<LayerCache> cache_;
  Prefix prefix_;
};

}  // namespace

std::size_t attend_document(LayerCache& cache, const Prefix& prefix, const LayerStates& states, const Operand& out) {
  if (states.members() != 1 || states.first_position != 0)
    throw Error(ErrorCode::kInternal, "cache", "expected a whole document of one sequence");
  const std::size_t tokens = states.tokens();
  std::size_t most = 0;
  if (prefix.whole) cache.begin_prefix(prefix.tokens);
  for (std::size_t first = 0, count = 0; first < tokens; first += count) {
    const bool in_prefix = prefix.whole && first < prefix.tokens;
    count = std::min(cache.max_tokens_per_call(), (in_prefix ? std::min(prefix.tokens, tokens) : tokens) - first);
    attend_group(cache, states, first, count, out);
    const bool ends = in_prefix && first + count == prefix.tokens;
    if (ends) cache.end_prefix(states.backend);
    if (!in_prefix || ends) most = std::max(most, cache.peak().stored);
  }
  return most;
}

Cache for_documents(Cache cache) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  for (std::unique_ptr<LayerCache>& layer : cache.layers())
    layers.push_back(layer ? std::make_unique<DocumentCache>(std::move(layer), cache.prefix()) : nullptr);
  return Cache(std::move(layers), cache.prefix());
}

}  // namespace kvs::inline caches
