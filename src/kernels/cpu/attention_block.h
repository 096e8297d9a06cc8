// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/attention_ops.h"
#include "kernels/cpu/packed_states.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {

/// A packed run of keys, as seen by one block of queries.
struct KeyRun {
  const std::byte* chunk;
  std::size_t count;     // number of keys
  bool causal;           // keys of the call's own tokens
  std::size_t position;  // of key 0, counted over the past and the member's own tokens
};

/// The queries of one KV head's group for some tokens of one member.
struct QueryBlock {
  const float* q;  // of the first token in the group's first head
  std::size_t head_stride;
  std::size_t tokens;
  std::size_t position;  // of the first token, counted as in KeyRun
  const float* sinks;    // of the group's heads, or null
  void* out;             // output of that token and head
  std::size_t out_stride;
};

/// The transformation of q·k before the softmax, as in AttentionInput.
struct ScoreRule {
  float scale;
  float softcap;               // 0: none
  std::size_t window;          // 0: none
  std::size_t chunk;           // 0: none
  std::size_t first_position;  // of the oldest key, with chunks
  Settling settling;
};

/// Attention of blocks of queries over runs of keys by an online softmax. The running maximum, sum and mix of each
/// query row are corrected when a later run raises the maximum. The rows of a group's heads are stacked, so that one
/// product serves all heads: row = head · height + token.
/// Source: Milakov & Gimelshein (2018), arXiv:1805.02867; Dao et al., FlashAttention (2022), arXiv:2205.14135.
class AttentionBlock {
 public:
  /// @param heads  query heads per KV head;  @param tokens  tokens per block, except possibly the last block
  /// @param total_tokens  tokens of a member; determines the size of the last block
  AttentionBlock(ProductEngine& engine, const StatesLayout& layout, std::size_t heads, std::size_t tokens,
                 std::size_t total_tokens, const ScoreRule& rule);

  /// Returns the number of tokens per block for groups of `heads` heads.
  static std::size_t block_tokens(std::size_t heads, std::size_t total_tokens) noexcept;

  std::size_t scratch_bytes() const noexcept;

  /// @param scratch  scratch_bytes() bytes, aligned to a cache line.  @return false if the engine refused a product.
  bool run(const QueryBlock& block, const std::vector<KeyRun>& runs, std::size_t worker, void* scratch) const noexcept;

 private:
  struct Rows;
  struct KeyRange {
    std::size_t begin, end;
  };
  struct Products {
    std::shared_ptr<const Product> scores = {};                                  // [rows, width]
    std::vector<std::shared_ptr<const Product>> first_mix = {}, later_mix = {};  // [slice], over `width` keys
    std::size_t width = 0;                                                       // keys per product
  };
  Products compile(std::size_t rows, std::size_t width) const;
  const Products& products(bool last_block, std::size_t width) const noexcept;
  Rows carve(std::size_t height, void* scratch) const noexcept;
  template <class T>
  void gather(const QueryBlock& block, const Rows& rows) const noexcept;
  void begin(const QueryBlock& block, const Rows& rows) const noexcept;
  KeyRange keys_read(const KeyRun& run, std::size_t position) const noexcept;
  ScoreTile tile_of(const QueryBlock& block, const KeyRun& run, std::size_t width, const Rows& rows) const noexcept;
  void rescale_mix(const Rows& rows) const noexcept;
  void finish(const QueryBlock& block, const Rows& rows) const noexcept;
  bool mix(const Products& products, const KeyRun& run, bool first, std::size_t worker,
           const Rows& rows) const noexcept;

  ProductEngine* engine_;
  const StatesLayout* layout_;
  std::size_t heads_, tokens_, height_, last_height_;  // heights: rows per head (tokens rounded up)
  ScoreRule rule_;
  float scale_;                        // includes log2(e), because weights are powers of 2, and a cap
  float inverse_cap_;                  // scores are tanh(q·k · inverse_cap_); 0: no cap
  float sink_scale_;                   // of sinks, to logits before `scale_`
  std::vector<Products> products_[2];  // [last block][width / kWidthStep − 1]
};

}  // namespace kvs::cpu
