// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "caches/cache_shape.h"
#include "calibrate/kvtc/products.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns the caches of the layers of a pool, in order, which share their blocks. A pass must take them through all
/// layers of the pool before the next tokens come, at most max_tokens_per_call() tokens.
///
/// Keys before RoPE and values wait until KvtcTokens::block tokens of all layers are coded together (products.h). They
/// are decoded at once, and attention reads the decoded states from then on: a storage form is decoded as a whole
/// before attention reads it. The decoded rows are this run's buffers; an engine stores the blocks.
/// Source: Staniszewski and Łańcucki (2025), KVTC, arXiv:2511.01815. Deviations: the paper codes a cache once, between
/// two turns; here tokens are coded as they leave the `recent` ones, so that every token reads what a store holds.
/// Tokens that wait are in 16 bits as in the paper, or in q8_0.
std::vector<std::unique_ptr<LayerCache>> make_kvtc_caches(const std::shared_ptr<const KvtcProducts>& products);

/// The caches of a config, which share its products. Layers outside all pools keep everything.
class KvtcCaches {
 public:
  KvtcCaches(Backend& backend, const ModelConfig& model, const std::vector<KvtcPool>& pools, const KvtcTokens& tokens);
  Cache make() const;

 private:
  CacheShape shape_;
  std::vector<std::shared_ptr<const KvtcProducts>> pools_;
};

}  // namespace kvs::inline calibrate
