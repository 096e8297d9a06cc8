// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/kvtc/block.h"
#include "calibrate/kvtc/pool.h"
#include "kernels/backend.h"

namespace kvs::inline calibrate {

/// The heads of a layer.
struct KvtcHeads {
  std::size_t kv_heads = 0, head_dim = 0;

  std::size_t values() const noexcept { return kv_heads * head_dim; }  // of keys; values have as many
};

/// A pool with its products in a backend's memory, shared by all sequences.
class KvtcProducts {
 public:
  /// @param heads  [layer of the pool]
  KvtcProducts(Backend& backend, KvtcPool pool, const KvtcTokens& tokens, std::vector<KvtcHeads> heads);

  const KvtcPool& pool() const noexcept { return pool_; }
  const KvtcTokens& tokens() const noexcept { return tokens_; }
  const KvtcHeads& heads(std::size_t layer) const noexcept { return heads_[layer]; }
  std::size_t layers() const noexcept { return heads_.size(); }

  /// Codes keys before RoPE and values of some tokens. On a CPU the same states give the same bytes.
  /// @param states  [layer of the pool], each [1, kv_head, token, head_dim]
  KvtcBlock encode(Backend& backend, std::span<const TokenRows::Part> states) const;
  /// Returns the decoded states, [layer of the pool].
  std::vector<TokenRows::Part> decode(Backend& backend, const KvtcBlock& block) const;

 private:
  struct Weights {
    std::unique_ptr<Weight> analysis, synthesis;  // in f32: [component, value], [value, component]
  };

  static Weights weights_of(Backend& backend, const KvtcSide& side);

  KvtcPool pool_;
  KvtcTokens tokens_;
  std::vector<KvtcHeads> heads_;
  Weights keys_, values_;
};

}  // namespace kvs::inline calibrate
