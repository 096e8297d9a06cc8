#pragma once

#include <cstddef>

#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// What the attention kernels read and write; axes as in AttentionInput.
struct AttentionArguments {
  const float* q = nullptr;
  const float *k = nullptr, *v = nullptr;
  const float *past_k = nullptr, *past_v = nullptr;
  std::size_t members = 0, query_heads = 0, kv_heads = 0, tokens = 0, past = 0, head_dim = 0;
  bool shared_past = false;  // all members read member 0's past
  float scale = 1;
  std::size_t window = 0;  // 0: none; as in AttentionInput
  float softcap = 0;       // 0: none
  void* out = nullptr;     // [member · token, H · head_dim] in the kernel's type
};

constexpr std::size_t kMostHeadDim = 256;  // of both kernels

/// Both follow Dao, "FlashAttention-2" (arXiv 2307.08691), algorithm 1: a block of queries walks over blocks of keys
/// and rescales what it has whenever a row's maximum rises, so that no more than one tile of scores exists. head_dim is
/// even and at most kMostHeadDim. f32 products and sums on the plain cores.
void attention_f32(const Context& context, const AttentionArguments& in);
/// q, k, v and the weights rounded to bf16, products on the tensor cores, f32 sums; the sum of weights is unrounded.
void attention_bf16(const Context& context, const AttentionArguments& in);

}  // namespace kvs::cuda
