// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/kvtc/products.h"

namespace kvs::inline calibrate {

/// What the layers of a pool hold of a sequence: sinks, blocks of coded tokens, then waiting tokens.
class PooledTokens {
 public:
  explicit PooledTokens(std::shared_ptr<const KvtcProducts> products);

  std::size_t layers() const noexcept { return layers_.size(); }
  /// Returns the number of tokens that may come to a layer before older ones have to be coded.
  std::size_t room(std::size_t layer) const noexcept;
  /// Computes a layer's attention and keeps the new tokens. After the last layer, codes the oldest waiting tokens once
  /// there are enough. @param states, out  as for LayerCache::attend
  void attend(std::size_t layer, LayerStates& states, const Operand& out);
  /// Bytes of a layer: the blocks count for the first one.
  CacheBytes bytes(std::size_t layer) const noexcept;
  /// Returns a layer's largest bytes during the last pass.
  CacheBytes peak(std::size_t layer) const noexcept { return layers_[layer].peak; }

 private:
  struct Layer {
    TokenRows waiting;                          // keys before RoPE
    TokenRows past;                             // all tokens from `start` on, decoded, with rotated keys
    std::size_t start = 0;                      // first token that a later one reads
    std::size_t seen = 0;                       // tokens so far
    std::size_t row_values = 0;                 // of a token, keys and values
    std::optional<TokenRows::Part> fresh = {};  // decoded tokens that replace those of `past` at the next call
    CacheBytes peak;
  };

  std::size_t missing_sinks(const Layer& layer) const noexcept;
  void put_fresh(Layer& layer, const LayerStates& states) const;
  void drop_old(Layer& layer, const LayerStates& states) const;
  void code(Backend& backend);

  std::shared_ptr<const KvtcProducts> products_;
  std::vector<Layer> layers_;
  std::deque<KvtcBlock> blocks_;
  std::size_t coded_ = 0;        // position after the last block
  std::size_t coded_bytes_ = 0;  // of the blocks that are held
};

}  // namespace kvs::inline calibrate
