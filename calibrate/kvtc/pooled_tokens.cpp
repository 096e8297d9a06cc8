// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/pooled_tokens.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the type of waiting rows. q8_0 is f16 for heads that do not fit its blocks.
KvTypes waiting_types(KvtcRecent recent, std::size_t head_dim) {
  constexpr std::size_t kBlock = 32;
  if (recent == KvtcRecent::kF16) return {};
  const RowFormat format{.kind = head_dim % kBlock == 0 ? RowKind::kQ8_0 : RowKind::kF16};
  return {{format}, {format}};
}

/// Overwrites tokens of k and v [1, head, token, head_dim] from `first` on.
void overwrite(Backend& backend, const TokenRows::Part& part, const LayerStates& states, std::size_t first) {
  const auto [one, heads, count, head_dim] = part.k.view().shape();
  for (std::size_t head = 0; head < heads; ++head)
    for (const auto& [from, to] :
         {std::pair(part.k.view().data(), states.k.data()), std::pair(part.v.view().data(), states.v.data())})
      backend.copy(to + (head * states.tokens() + first) * head_dim, from + head * count * head_dim,
                   count * head_dim * sizeof(float));
}

}  // namespace

PooledTokens::PooledTokens(std::shared_ptr<const KvtcProducts> products) : products_(std::move(products)) {
  const KvtcTokens& tokens = products_->tokens();
  coded_ = tokens.sinks;
  for (std::size_t n = 0; n < products_->layers(); ++n) {
    const KvtcHeads& heads = products_->heads(n);
    Layer& layer = layers_.emplace_back();
    layer.waiting = TokenRows(waiting_types(tokens.type, heads.head_dim));
    layer.row_values = 2 * heads.values();
  }
}

std::size_t PooledTokens::missing_sinks(const Layer& layer) const noexcept {
  const std::size_t sinks = products_->tokens().sinks;
  return sinks - std::min(sinks, layer.seen);
}

std::size_t PooledTokens::room(std::size_t layer) const noexcept {
  const KvtcTokens& tokens = products_->tokens();
  return missing_sinks(layers_[layer]) + tokens.recent + tokens.block - layers_[layer].waiting.count();
}

CacheBytes PooledTokens::bytes(std::size_t layer) const noexcept {
  const Layer& held = layers_[layer];
  const std::size_t sinks = std::min(products_->tokens().sinks, held.seen), whole = sinks - std::min(sinks, held.start);
  CacheBytes bytes = held.waiting.bytes();
  bytes.stored += whole * held.row_values * CacheBytes::kStoredValue + (layer == 0 ? coded_bytes_ : 0);
  const CacheBytes past = held.past.bytes();
  bytes.used += past.used + (layer == 0 ? coded_bytes_ : 0);
  bytes.spare += past.spare;
  return bytes;
}

void PooledTokens::attend(std::size_t layer, LayerStates& states, const Operand& out) {
  Layer& held = layers_[layer];
  Backend& backend = states.backend;
  if (states.members() > 1) throw Error(ErrorCode::kInternal, "cache", "coded rows of several members");
  if (states.tokens() > room(layer)) throw Error(ErrorCode::kInternal, "cache", "more tokens than a block takes");
  held.peak = {};
  put_fresh(held, states);
  const std::size_t sinks = std::min(states.tokens(), missing_sinks(held)), count = states.tokens() - sinks;
  if (count > 0) {
    held.waiting.append(backend, states.k, states.v, sinks, count);
    if (!held.waiting.is_plain())
      overwrite(backend, held.waiting.copy(backend, held.waiting.count() - count, count), states, sinks);
  }
  rotate_at(states, states.first_position);
  const PastKv past = held.past.add(states);
  attend_rows(states, past, out);
  held.seen += states.tokens();
  drop_old(held, states);
  if (layer + 1 < layers_.size()) return;
  for (std::size_t n = 0; n < layers_.size(); ++n) layers_[n].peak = bytes(n);
  code(backend);
}

/// Replaces the rows of the tokens that were coded after the last call.
void PooledTokens::put_fresh(Layer& layer, const LayerStates& states) const {
  if (!layer.fresh) return;
  const TokenRows::Part& part = *layer.fresh;
  const std::size_t count = part.k.view().extent(2), first = coded_ - count,
                    gone = std::min(count, layer.start - std::min(layer.start, first));
  if (gone < count) {
    states.backend.rope(part.k.view(), states.rope, first, RopeDirection::kForward, {});
    layer.past.put(states.backend, first + gone - layer.start, part.k.view(), part.v.view(), gone, count - gone);
  }
  layer.fresh.reset();
}

/// Drops the rows that no later token reads.
void PooledTokens::drop_old(Layer& layer, const LayerStates& states) const {
  const std::size_t oldest = oldest_read(layer.seen - 1, states.window, states.chunk);
  if (oldest <= layer.start) return;
  layer.past.drop_front(states.backend, oldest - layer.start);
  layer.start = oldest;
}

/// Drops blocks that no layer reads, and codes the oldest waiting tokens once there are enough.
void PooledTokens::code(Backend& backend) {
  const std::size_t start = std::ranges::min_element(layers_, {}, &Layer::start)->start;
  std::size_t held = 0;
  for (const KvtcBlock& block : blocks_) held += block.tokens;
  for (; !blocks_.empty() && coded_ - held + blocks_.front().tokens <= start; blocks_.pop_front()) {
    held -= blocks_.front().tokens;
    coded_bytes_ -= blocks_.front().bytes();
  }
  const KvtcTokens& tokens = products_->tokens();
  if (layers_.front().waiting.count() < tokens.recent + tokens.block) return;
  std::vector<TokenRows::Part> oldest;
  oldest.reserve(layers_.size());
  for (Layer& layer : layers_) {
    oldest.push_back(layer.waiting.copy(backend, 0, tokens.block));
    layer.waiting.drop_front(backend, tokens.block);
  }
  blocks_.push_back(products_->encode(backend, oldest));
  coded_bytes_ += blocks_.back().bytes();
  coded_ += tokens.block;
  std::vector<TokenRows::Part> decoded = products_->decode(backend, blocks_.back());
  for (std::size_t n = 0; n < layers_.size(); ++n) layers_[n].fresh = std::move(decoded[n]);
}

}  // namespace kvs::inline calibrate
