// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention.h"

#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/split_heads.h"

namespace kvs::inline kernels {
namespace {

void check_head_dim(std::size_t head_dim) {
  if (head_dim > cuda::kMaxHeadDim || head_dim % 2 != 0) {
    throw Error(ErrorCode::kUnsupported, "device cuda",
                "found a head_dim of " + std::to_string(head_dim) + ", expected an even one of at most " +
                    std::to_string(cuda::kMaxHeadDim));
  }
}

void refuse_sinks(const BackendView<const float, 1>& sinks) {
  if (!sinks.empty())
    throw Error(ErrorCode::kUnsupported, "device cuda", "found attention sinks, which run on the CPU only");
}

void check_shapes(const SelfAttentionInput& in, const Operand& out) {
  using cuda::require;
  refuse_sinks(in.sinks);
  require(in.kv_heads > 0 && in.query_heads % in.kv_heads == 0, "attention", "query heads in equal groups per kv head");
  require(out.rows == in.qkv.extent(0) && out.columns == in.query_heads * in.head_dim(), "attention",
          "out of [member · token, H · head_dim]");
  check_head_dim(in.head_dim());
}

cuda::SplitShape shape_of(const SelfAttentionInput& in) {
  return {in.members, in.query_heads, in.kv_heads, in.tokens(), in.head_dim()};
}

}  // namespace

std::size_t CudaBackend::max_head_dim() const { return cuda::kMaxHeadDim; }

PastKv CudaBackend::plain_past(const PastKv& past) {
  if (past.is_plain()) return past;
  return {plain_rows(past.k, past.late_k, past.slots, past_k_), plain_rows(past.v, past.late_v, {}, past_v_)};
}

void CudaBackend::spectrum_attention(const AttentionInput& input, const KeySpectrum& spectrum, Operand out) {
  check_spectrum_attention(input, spectrum, out);
  refuse_sinks(input.sinks);
  check_head_dim(input.q.extent(3));
  if (input.q.empty()) return;
  AttentionInput plain = input;
  plain.past = plain_past(input.past);
  spectrum_attention_.run(plain, spectrum, type_, out);
}

void CudaBackend::attention(const AttentionInput& input, Operand out) {
  check_attention(input, out);
  refuse_sinks(input.sinks);
  cuda::require(input.past.settling.step == 0, "attention", "rows that do not settle");
  check_head_dim(input.q.extent(3));
  if (input.q.empty()) return;
  const PastKv past = plain_past(input.past);
  const cuda::AttentionArguments<float> arguments{
      .q = input.q.data(),
      .k = input.k.data(),
      .v = input.v.data(),
      .past_k = static_cast<const float*>(past.k.data),
      .past_v = static_cast<const float*>(past.v.data),
      .members = input.q.extent(0),
      .query_heads = input.q.extent(1),
      .kv_heads = input.k.extent(1),
      .tokens = input.q.extent(2),
      .past = past.count(),
      .head_dim = input.q.extent(3),
      .past_stride = past.k.shape[2],
      .row = input.q.extent(3),
      .shared_past = past.count() > 0 && past.k.shape[0] == 1,
      .scale = input.scale,
      .window = input.window,
      .softcap = input.softcap,
      .out = type_ == DType::kF32 ? static_cast<float*>(out.data) : nullptr,
  };
  if (!input.mass.empty()) cuda::attention_mass(context_, arguments, input.mass.data());
  if (type_ == DType::kF32) return cuda::attention_f32(context_, arguments);
  auto* const narrow_out = static_cast<__nv_bfloat16*>(out.data);
  run_attention(cuda::narrowed(context_, arguments, narrow_out, attention_operands_));
}

void CudaBackend::run_attention(const cuda::AttentionArguments<__nv_bfloat16>& arguments) {
  const cuda::FusedShape shape{.members = arguments.members,
                               .query_heads = arguments.query_heads,
                               .kv_heads = arguments.kv_heads,
                               .tokens = arguments.tokens,
                               .head_dim = arguments.head_dim,
                               .window = arguments.window,
                               .scale = arguments.scale};
  cuda::FusedPlan* const plan = fused_attention_.plan_for(shape, arguments.past, arguments.softcap);
  if (plan != nullptr) {
    const cuda::DeviceArray<std::byte> workspace(context_, std::max<std::size_t>(1, plan->workspace_bytes()));
    if (fused_attention_.run(*plan, arguments.q, arguments.k, arguments.v, arguments.out, workspace.data())) return;
    note("attention: " + fused_attention_.note());
  }
  cuda::attention_bf16(context_, arguments);
}

/// Writes the heads directly in the layout that attention reads: rows as made by narrowed().
template <class T>
cuda::AttentionArguments<T> CudaBackend::split_for_attention(const SelfAttentionInput& in,
                                                             cuda::DeviceArray<T>& scratch) {
  constexpr std::size_t kTensorStep = 256 / sizeof(T);
  const std::size_t head_dim = in.head_dim(), row = cuda::attention_row<T>(head_dim);
  const auto size_of = [&](std::size_t heads) {
    return (in.members * heads * in.tokens() * row + kTensorStep - 1) / kTensorStep * kTensorStep;
  };
  const std::size_t q_size = size_of(in.query_heads), k_size = size_of(in.kv_heads);
  scratch.reserve(context_, q_size + 2 * k_size);
  const cuda::SplitTargets<T> to{scratch.data(), scratch.data() + q_size, scratch.data() + q_size + k_size, row};
  const cuda::SplitShape shape = shape_of(in);
  cuda::split_heads(context_, in.qkv, shape, &in.rope, in.first_position, to);
  return {.q = to.q,
          .k = to.k,
          .v = to.v,
          .members = in.members,
          .query_heads = in.query_heads,
          .kv_heads = in.kv_heads,
          .tokens = in.tokens(),
          .head_dim = head_dim,
          .row = row,
          .scale = in.scale,
          .window = in.window,
          .softcap = in.softcap};
}

void CudaBackend::self_attention(const SelfAttentionInput& input, Operand out) {
  check_shapes(input, out);
  if (input.qkv.empty()) return;
  if (type_ == DType::kF32) {
    auto arguments = split_for_attention(input, states_);
    arguments.out = static_cast<float*>(out.data);
    return cuda::attention_f32(context_, arguments);
  }
  auto arguments = split_for_attention(input, attention_operands_);
  arguments.out = static_cast<__nv_bfloat16*>(out.data);
  run_attention(arguments);
}

}  // namespace kvs::inline kernels
