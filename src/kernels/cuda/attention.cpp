#include "kernels/cuda/attention.h"

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace kvs {
namespace {

void check_shapes(const AttentionInput& in, const Operand& out) {
  using cuda::require;
  const auto [members, query_heads, tokens, head_dim] = in.q.shape();
  const auto& k = in.k.shape();
  require(k == in.v.shape() && k[0] == members && k[2] == tokens && k[3] == head_dim, "attention",
          "k and v of q's members, tokens and head_dim");
  require(k[1] > 0 && query_heads % k[1] == 0, "attention", "query heads in equal groups per kv head");
  require(in.past_k.empty() == in.past_v.empty(), "attention", "past keys and past values, or neither");
  const auto& past = in.past_k.shape();
  if (!in.past_k.empty()) {
    require(past == in.past_v.shape() && (past[0] == members || past[0] == 1) && past[1] == k[1] && past[3] == head_dim,
            "attention", "a past of [member or 1, kv_head, past, head_dim]");
  }
  require(out.rows == members * tokens && out.columns == query_heads * head_dim, "attention",
          "out of [member · token, H · head_dim]");
  require(in.scale > 0 && in.softcap >= 0, "attention", "a positive scale, and a soft cap or 0");
  if (head_dim > cuda::kMostHeadDim || head_dim % 2 != 0) {
    throw Error(ErrorCode::kUnsupported, "--device cuda",
                "found a head_dim of " + std::to_string(head_dim) + ", expected an even one of at most " +
                    std::to_string(cuda::kMostHeadDim));
  }
}

}  // namespace

void CudaBackend::attention(const AttentionInput& input, Operand out) {
  check_shapes(input, out);
  if (input.q.empty()) return;
  const bool has_past = !input.past_k.empty();
  const cuda::AttentionArguments<float> arguments{
      .q = input.q.data(),
      .k = input.k.data(),
      .v = input.v.data(),
      .past_k = input.past_k.data(),
      .past_v = input.past_v.data(),
      .members = input.q.extent(0),
      .query_heads = input.q.extent(1),
      .kv_heads = input.k.extent(1),
      .tokens = input.q.extent(2),
      .past = has_past ? input.past_k.extent(2) : 0,
      .head_dim = input.q.extent(3),
      .row = input.q.extent(3),
      .shared_past = has_past && input.past_k.extent(0) == 1,
      .scale = input.scale,
      .window = input.window,
      .softcap = input.softcap,
      .out = type_ == DType::kF32 ? static_cast<float*>(out.data) : nullptr,
  };
  if (type_ == DType::kF32) return cuda::attention_f32(context_, arguments);
  auto* const narrow_out = static_cast<__nv_bfloat16*>(out.data);
  cuda::attention_bf16(context_, cuda::narrowed(context_, arguments, narrow_out, attention_operands_));
}

}  // namespace kvs
