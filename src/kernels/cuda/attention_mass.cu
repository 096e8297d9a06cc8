// SPDX-License-Identifier: Apache-2.0
// Attention does not keep weights. The weights of a single token are computed again, one block per query head.
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/reduce.cuh"

namespace kvs::cuda {
namespace {

/// One block per query head; each warp handles one key at a time. weights: [query_head, past + 1]
__global__ void softmax_weights(const AttentionArguments<float> in, float* weights) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t head = blockIdx.x, kv_head = head / (in.query_heads / in.kv_heads);
  const auto keys = static_cast<int>(in.past + 1), lane = static_cast<int>(threadIdx.x % 32);
  const int hidden = in.window == 0 || in.window > in.past ? 0 : keys - static_cast<int>(in.window);
  const TokenRows<float> rows{in.past_k + kv_head * in.past_stride * in.row, in.k + kv_head * in.row,
                              static_cast<int>(in.past), keys, static_cast<int>(in.row)};
  const float* const query = in.q + head * in.row;
  float* const out = weights + head * static_cast<std::size_t>(keys);
  float largest = -INFINITY;
  for (int key = static_cast<int>(threadIdx.x / 32); key < keys; key += kThreads / 32) {
    const float* const from = rows.at(key);
    float score = 0;
    for (int channel = lane; channel < static_cast<int>(in.head_dim); channel += 32)
      score += query[channel] * from[channel];
    score = key < hidden ? -INFINITY : capped(in, warp_sum(score)) * unit_of(in);
    if (lane == 0) out[key] = score;
    largest = fmaxf(largest, score);
  }
  largest = block_max(largest, scratch);  // includes a barrier, so all threads can read all scores
  float sum = 0;
  for (int key = static_cast<int>(threadIdx.x); key < keys; key += kThreads) {
    out[key] = expf(out[key] - largest);
    sum += out[key];
  }
  sum = block_sum(sum, scratch);
  for (int key = static_cast<int>(threadIdx.x); key < keys; key += kThreads) out[key] /= sum;
}

/// One thread per key of a KV head: out[index] = Σ over the group of weights[head, key].
__global__ void sum_group(const float* weights, std::size_t kv_heads, std::size_t group, std::size_t keys, float* out) {
  const std::size_t index = global_index();
  if (index >= kv_heads * keys) return;
  const float* const first = weights + index / keys * group * keys + index % keys;
  float sum = 0;
  for (std::size_t head = 0; head < group; ++head) sum += first[head * keys];
  out[index] = sum;
}

}  // namespace

void attention_mass(const Context& context, const AttentionArguments<float>& in, float* mass) {
  const std::size_t keys = in.past + 1;
  require(keys < 0x7fffffff - kThreads, "attention", "fewer than 2^31 positions");
  const DeviceArray<float> weights(context, in.query_heads * keys);
  launch_kernel("softmax_weights", softmax_weights, {static_cast<unsigned>(in.query_heads)}, context.stream(), in,
                weights.data());
  launch_kernel("sum_group", sum_group, {blocks_for(in.kv_heads * keys)}, context.stream(), weights.data(), in.kv_heads,
                in.query_heads / in.kv_heads, keys, mass);
}

}  // namespace kvs::cuda
