// SPDX-License-Identifier: Apache-2.0
// Converts q, k, v and the past to bf16 for the tensor cores, if a hook or a cache has them in f32. Rounding once per
// call, instead of once per block of queries, lets the attention kernels copy 16 bytes at a time without converting. It
// costs 6 bytes per value (4 read, 2 written), 8 with the first read by a kernel. A kernel that rounds while it loads
// would read 4 bytes for every block of queries and every query head of a group. So this pays from two blocks of
// queries, or two query heads per KV head, on. Below (less than one block over a long past, one query head per KV head)
// it costs up to twice the bytes. No pass of this project has that case (they pass a context, or a batch of
// continuations of one shared past), so it has no second path.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

constexpr int kChunk = 8;  // bf16 values in 16 bytes, handled by one thread
constexpr int kTensors = 5;

struct Part {
  const float* from;
  __nv_bfloat16* to;
  std::uint32_t end;  // end of this tensor's chunks, counted over all tensors
  bool wide;          // rows are aligned to 16 bytes
};

struct NarrowArguments {
  Part parts[kTensors];
  std::uint32_t head_dim, row_chunks;
};

__global__ void narrow_rows(const NarrowArguments in) {
  const auto index = static_cast<std::uint32_t>(global_index());
  if (global_index() >= in.parts[kTensors - 1].end) return;
  Part part = in.parts[0];
  std::uint32_t first = 0;
#pragma unroll
  for (int i = 1; i < kTensors; ++i) {
    if (index < in.parts[i - 1].end) break;
    first = in.parts[i - 1].end;
    part = in.parts[i];
  }
  const std::uint32_t chunk = index - first;
  const std::uint32_t row = chunk / in.row_chunks, channel = chunk % in.row_chunks * kChunk;
  const float* const from = part.from + std::size_t{row} * in.head_dim + channel;
  Values<kChunk> values;
  if (part.wide && channel + kChunk <= in.head_dim) {
    values = load<kChunk>(from);
  } else {
#pragma unroll
    for (std::uint32_t i = 0; i < kChunk; ++i) values.at[i] = channel + i < in.head_dim ? from[i] : 0.0F;
  }
  store(part.to + std::size_t{chunk} * kChunk, values);
}

}  // namespace

AttentionArguments<__nv_bfloat16> narrowed(const Context& context, const AttentionArguments<float>& in,
                                           __nv_bfloat16* out, DeviceArray<__nv_bfloat16>& scratch) {
  constexpr std::size_t kAligned = 256 / sizeof(__nv_bfloat16);
  const std::size_t row = attention_row<__nv_bfloat16>(in.head_dim), row_chunks = row / kChunk;
  const std::size_t own_rows = in.members * in.kv_heads * in.tokens;
  const std::size_t past_rows = (in.shared_past ? 1 : in.members) * in.kv_heads * in.past_stride;
  const std::size_t rows[kTensors] = {in.members * in.query_heads * in.tokens, own_rows, own_rows, past_rows,
                                      past_rows};
  std::size_t begin[kTensors + 1] = {}, chunks = 0;
  for (int i = 0; i < kTensors; ++i) {
    begin[i + 1] = (begin[i] + rows[i] * row + kAligned - 1) / kAligned * kAligned;
    chunks += rows[i] * row_chunks;
  }
  require(chunks <= UINT32_MAX, "attention", "fewer than 2^35 values of q, k, v and the past");
  scratch.reserve(context, begin[kTensors]);

  const float* const from[kTensors] = {in.q, in.k, in.v, in.past_k, in.past_v};
  NarrowArguments arguments{.parts = {},
                            .head_dim = static_cast<std::uint32_t>(in.head_dim),
                            .row_chunks = static_cast<std::uint32_t>(row_chunks)};
  std::size_t end = 0;
  for (int i = 0; i < kTensors; ++i) {
    end += rows[i] * row_chunks;
    const bool wide = is_aligned<kChunk>(from[i]) && in.head_dim % 4 == 0;
    arguments.parts[i] = {from[i], scratch.data() + begin[i], static_cast<std::uint32_t>(end), wide};
  }
  launch_kernel("narrow_rows", narrow_rows, {blocks_for(chunks)}, context.stream(), arguments);
  return {.q = arguments.parts[0].to,
          .k = arguments.parts[1].to,
          .v = arguments.parts[2].to,
          .past_k = arguments.parts[3].to,
          .past_v = arguments.parts[4].to,
          .members = in.members,
          .query_heads = in.query_heads,
          .kv_heads = in.kv_heads,
          .tokens = in.tokens,
          .past = in.past,
          .head_dim = in.head_dim,
          .past_stride = in.past_stride,
          .row = row,
          .shared_past = in.shared_past,
          .scale = in.scale,
          .window = in.window,
          .softcap = in.softcap,
          .out = out};
}

}  // namespace kvs::cuda
