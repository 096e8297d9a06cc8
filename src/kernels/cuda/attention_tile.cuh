#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include "core/error.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"

namespace kvs::cuda {

/// One block's share: `Queries` tokens of one query head of one member, and the keys that any of them reads.
template <class T, int Queries>
struct AttentionTile {
  using Arguments = AttentionArguments<T>;

  __device__ explicit AttentionTile(const Arguments& in)
      // The last tokens read the most keys, so their blocks come first.
      : first(std::size_t{gridDim.x - 1 - blockIdx.x} * Queries),
        head(blockIdx.y),
        member(blockIdx.z),
        kv_head(head / (in.query_heads / in.kv_heads)),
        keys(in.past + (first + Queries < in.tokens ? first + Queries : in.tokens)),
        first_key(in.window == 0 || in.past + first < in.window ? 0 : in.past + first + 1 - in.window) {}

  /// Row of token `token` of this head's queries, or null past the end.
  __device__ const T* query(const Arguments& in, std::size_t token) const {
    if (token >= in.tokens) return nullptr;
    return in.q + ((member * in.query_heads + head) * in.tokens + token) * in.row;
  }
  /// Row `key` of past ++ own tokens, or null past the end.
  __device__ const T* state(const Arguments& in, const T* past, const T* own, std::size_t key) const {
    if (key >= in.past + in.tokens) return nullptr;
    if (key < in.past) return past + (((in.shared_past ? 0 : member) * in.kv_heads + kv_head) * in.past + key) * in.row;
    return own + ((member * in.kv_heads + kv_head) * in.tokens + key - in.past) * in.row;
  }
  /// Where the output of `token` begins, in elements.
  __device__ std::size_t out_offset(const Arguments& in, std::size_t token) const {
    return ((member * in.tokens + token) * in.query_heads + head) * in.head_dim;
  }

  /// Whether the token at `position` reads `key`.
  __device__ static bool visible(const Arguments& in, std::size_t key, std::size_t position) {
    return key <= position && (in.window == 0 || position - key < in.window);
  }

  std::size_t first, head, member, kv_head;
  std::size_t keys;       // the last that any of the tokens reads, + 1
  std::size_t first_key;  // the first that any of them reads
};

/// A raw score q·k, in units of `unit_of(in)`.
template <class T>
__device__ float capped(const AttentionArguments<T>& in, float score) {
  return in.softcap > 0 ? tanhf(score * (in.scale / in.softcap)) : score;
}
template <class T>
__device__ float unit_of(const AttentionArguments<T>& in) {
  return in.softcap > 0 ? in.softcap : in.scale;
}

/// The score that is taken away before the exponential: 0 for a row that has seen no key yet, so that no ∞ − ∞ arises.
__device__ inline float base_of(float largest) { return largest == -INFINITY ? 0.0F : largest; }

/// Launches `kernel` with one block per tile of `queries` tokens, head and member.
template <class T, class Kernel>
void launch_attention(const Context& context, const AttentionArguments<T>& in, Kernel kernel, std::size_t queries,
                      unsigned threads, std::size_t shared_bytes) {
  constexpr std::size_t kMostBlocks = 65535;  // along the second and third axis of a grid
  require(in.query_heads <= kMostBlocks && in.members <= kMostBlocks, "attention", "at most 65535 heads and members");
  if (shared_bytes > context.shared_bytes()) {
    throw Error(ErrorCode::kUnsupported, "--device cuda",
                "found " + std::to_string(context.shared_bytes()) + " bytes of shared memory per block, expected " +
                    std::to_string(shared_bytes) + " for a head_dim of " + std::to_string(in.head_dim));
  }
  const dim3 blocks(static_cast<unsigned>((in.tokens + queries - 1) / queries), static_cast<unsigned>(in.query_heads),
                    static_cast<unsigned>(in.members));
  launch_kernel("attention", kernel, {blocks, threads, shared_bytes}, context.stream(), in);
}

}  // namespace kvs::cuda
