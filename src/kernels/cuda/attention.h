// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstddef>

#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"

namespace kvs::cuda {

/// Input and output of the attention kernels, in one element type. Axes as in AttentionInput.
template <class T>
struct AttentionArguments {
  const T* q = nullptr;
  const T *k = nullptr, *v = nullptr;
  const T *past_k = nullptr, *past_v = nullptr;
  std::size_t members = 0, query_heads = 0, kv_heads = 0, tokens = 0, past = 0, head_dim = 0;
  std::size_t past_stride = 0;  // row distance between the pasts of adjacent heads: at least `past`
  std::size_t row = 0;          // element distance between adjacent tokens' rows in all inputs: at least head_dim
  bool shared_past = false;     // all members read member 0's past
  float scale = 1;
  std::size_t window = 0;  // 0: none; as in AttentionInput
  float softcap = 0;       // 0: none
  T* out = nullptr;        // [member · token, H · head_dim], packed
};

constexpr std::size_t kMaxHeadDim = 256;  // limit of both kernels

/// Returns AttentionArguments::row for rows aligned to 16 bytes.
template <class T>
constexpr std::size_t attention_row(std::size_t head_dim) {
  constexpr std::size_t kStep = 16 / sizeof(T);
  return (head_dim + kStep - 1) / kStep * kStep;
}

/// Rounds the five inputs to bf16 in `scratch`, which grows as needed. Rows are head_dim rounded up to a multiple of 8,
/// padded with zeros, so that every row is aligned to 16 bytes and every tensor to 256. A past that the members share
/// is rounded once. Valid until the next call with this scratch. Costs one launch and 6 bytes of memory traffic per
/// value.
AttentionArguments<__nv_bfloat16> narrowed(const Context& context, const AttentionArguments<float>& in,
                                           __nv_bfloat16* out, DeviceArray<__nv_bfloat16>& scratch);

/// Both kernels follow Dao, "FlashAttention-2" (arXiv 2307.08691), algorithm 1. A block of queries iterates over blocks
/// of keys and rescales its sums whenever a row's maximum rises, so at most one tile of scores exists. The head_dim
/// must be even and at most kMaxHeadDim. attention_f32() computes f32 products and sums without tensor cores.
void attention_f32(const Context& context, const AttentionArguments<float>& in);
/// For narrowed() inputs: products and weights in bf16 on the tensor cores, f32 sums. The weights' sum is not rounded.
void attention_bf16(const Context& context, const AttentionArguments<__nv_bfloat16>& in);

/// Computes AttentionInput::mass for a single token of one member. Reads the keys once more.
void attention_mass(const Context& context, const AttentionArguments<float>& in, float* mass);

}  // namespace kvs::cuda
