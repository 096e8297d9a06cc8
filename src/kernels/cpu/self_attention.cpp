// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline kernels {

void CpuBackend::self_attention(const SelfAttentionInput& input, Operand out) {
  states_.reserve(input.qkv.size() * sizeof(float));
  auto* next = static_cast<float*>(states_.data());
  const auto states = [&](std::size_t heads) {
    const std::size_t size = input.members * heads * input.tokens() * input.head_dim();
    const BackendView<float, 4> view(std::span(next, size), {input.members, heads, input.tokens(), input.head_dim()});
    next += size;
    return view;
  };
  const BackendView<float, 4> q = states(input.query_heads), k = states(input.kv_heads), v = states(input.kv_heads);
  split_heads(input.qkv, q, k, v);
  rope(q, input.rope, input.first_position, RopeDirection::kForward, {});
  rope(k, input.rope, input.first_position, RopeDirection::kForward, {});
  attention({.q = q,
             .k = k,
             .v = v,
             .scale = input.scale,
             .window = input.window,
             .chunk = input.chunk,
             .first_position = input.first_position,
             .softcap = input.softcap,
             .sinks = input.sinks},
            out);
}

}  // namespace kvs::inline kernels
