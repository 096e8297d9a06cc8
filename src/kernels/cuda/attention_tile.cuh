// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"

namespace kvs::cuda {

/// Assigns tiles to blocks. Blocks start in the order of their index, so this is also the order of the work. Sections
/// of (KV head, member) pairs come first, whose keys and values fit the L2 cache together. Within a section, tiles that
/// read the most keys start first, so that short tiles fill the gaps at the end. The query heads of a pair are
/// adjacent.
struct AttentionOrder {
  unsigned tiles = 0;    // per query head
  unsigned section = 0;  // pairs per section
};

/// Rows of one head, one per token: the first `past_count` from `past`, the others from `own`.
template <class T>
struct TokenRows {
  const T *past, *own;
  int past_count, count;
  int size;  // element distance between rows

  __device__ const T* at(int token) const {
    return token < past_count ? past + std::ptrdiff_t{token} * size : own + std::ptrdiff_t{token - past_count} * size;
  }
};

/// The work of one block: `Queries` tokens of one query head of one member, and the keys that any of them reads.
template <class T, int Queries>
struct AttentionTile {
  __device__ AttentionTile(const AttentionArguments<T>& in, const AttentionOrder& order) {
    const auto group = static_cast<unsigned>(in.query_heads / in.kv_heads);
    const auto pairs = static_cast<unsigned>(in.members * in.kv_heads);
    const unsigned first_pair = blockIdx.x / (order.section * order.tiles * group) * order.section;
    const unsigned in_section = blockIdx.x - first_pair * order.tiles * group;
    const unsigned heads = min(order.section, pairs - first_pair) * group;
    const unsigned pair = first_pair + in_section % heads / group;
    kv_head = pair / static_cast<unsigned>(in.members);  // members that share a past are adjacent
    member = pair % static_cast<unsigned>(in.members);
    head = kv_head * group + in_section % heads % group;
    first = static_cast<int>(order.tiles - 1 - in_section / heads) * Queries;
    const auto tokens = static_cast<int>(in.tokens), past = static_cast<int>(in.past);
    keys = past + min(first + Queries, tokens);
    window = in.window == 0 || in.window > in.past + in.tokens ? past + tokens : static_cast<int>(in.window);
    first_key = max(past + first + 1 - window, 0);
  }

  __device__ TokenRows<T> queries(const AttentionArguments<T>& in) const {
    return {nullptr, in.q + (member * in.query_heads + head) * in.tokens * in.row, 0, static_cast<int>(in.tokens),
            static_cast<int>(in.row)};
  }
  /// Returns keys or values: past ++ own tokens.
  __device__ TokenRows<T> states(const AttentionArguments<T>& in, const T* past, const T* own) const {
    return {past + ((in.shared_past ? 0 : member) * in.kv_heads + kv_head) * in.past_stride * in.row,
            own + (member * in.kv_heads + kv_head) * in.tokens * in.row, static_cast<int>(in.past),
            static_cast<int>(in.past + in.tokens), static_cast<int>(in.row)};
  }
  /// Returns the element offset of the output of `token`.
  __device__ std::size_t out_offset(const AttentionArguments<T>& in, int token) const {
    return ((member * in.tokens + token) * in.query_heads + head) * in.head_dim;
  }

  std::size_t head, member, kv_head;
  int first;      // first token
  int keys;       // last key that any of the tokens reads, + 1
  int first_key;  // first key that any of the tokens reads
  int window;     // maximum number of positions that a token reads; all positions if there is no window
};

/// Returns the factor of a score before the exponential. With a soft cap, scores are the results of a tanh.
template <class T>
__device__ float unit_of(const AttentionArguments<T>& in) {
  return in.softcap > 0 ? in.softcap : in.scale;
}

/// Caps a raw score q·k, in units of `unit_of(in)`.
__device__ inline float capped(const AttentionArguments<float>& in, float score) {
  return in.softcap > 0 ? tanhf(score * (in.scale / in.softcap)) : score;
}

/// Returns the score to subtract before the exponential: 0 for a row that has seen no key, because ∞ − ∞ would be NaN.
__device__ inline float base_of(float largest) { return largest == -INFINITY ? 0.0F : largest; }

/// Shared memory available to a block on every GPU of compute capability 8.0 or later: the limit of 8.6, 8.9 and 12.0.
constexpr std::size_t kMaxSharedBytes = std::size_t{99} << 10;

/// Launches `kernel` with one block per tile of `queries` tokens, head and member.
template <class T>
void launch_attention(const Context& context, const AttentionArguments<T>& in,
                      void (*kernel)(AttentionArguments<T>, AttentionOrder), std::size_t queries, unsigned threads,
                      std::size_t shared_bytes) {
  // Limit of a section's keys and values, which a few blocks per multiprocessor read at a time. It fits half the L2
  // cache of any data-centre GPU (an A100 has two of 20 MiB).
  constexpr std::size_t kSectionBytes = std::size_t{16} << 20, kMost = 0x7fffffff;
  const std::size_t tiles = (in.tokens + queries - 1) / queries, pairs = in.members * in.kv_heads;
  require(in.past + in.tokens < kMost - queries && tiles * in.members * in.query_heads <= kMost, "attention",
          "fewer than 2^31 positions, and tiles of queries");
  const std::size_t rows = in.tokens + (in.shared_past ? in.past / in.members : in.past);
  const std::size_t pair_bytes = 2 * rows * in.row * sizeof(T);
  const std::size_t section = std::clamp<std::size_t>(kSectionBytes / pair_bytes, 1, pairs);
  const AttentionOrder order{static_cast<unsigned>(tiles), static_cast<unsigned>(section)};
  const auto blocks = static_cast<unsigned>(tiles * in.members * in.query_heads);
  launch_kernel("attention", kernel, {blocks, threads, shared_bytes}, context.stream(), in, order);
}

}  // namespace kvs::cuda
