#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_sums.h"

namespace kvs::cuda {
namespace {

__global__ void components_of(const float* state, const float* cosine, const float* sine, std::size_t first,
                              std::size_t tokens, std::size_t head_dim, std::size_t half, double sign,
                              std::size_t count, double* out) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t chunk = i % half, token = first + i / half;
  double low = 0, high = 0, c = 1, s = 0;
  if (token < tokens) {
    low = state[token * head_dim + chunk];
    high = state[token * head_dim + half + chunk];
    c = cosine[token * half + chunk];
    s = sine[token * half + chunk];
  }
  double* const to = out + i / half * kComponents * half + chunk;
  to[0] = low * c - high * s;
  to[half] = high * c + low * s;
  to[2 * half] = sign * low;
  to[3 * half] = sign * high;
}

}  // namespace

RopeOperands::RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
                           std::size_t position)
    : q(query.data()),
      k(key.data()),
      cosine(table.cosine.data() + position * table.cosine.extent(1)),
      sine(table.sine.data() + position * table.sine.extent(1)),
      factor(table.factor),
      query_heads(query.extent(0)),
      kv_heads(key.extent(0)),
      group(kv_heads == 0 ? 0 : query_heads / kv_heads),
      tokens(query.extent(1)),
      head_dim(query.extent(2)),
      half(table.cosine.extent(1)) {
  const bool heads_agree = kv_heads > 0 && group * kv_heads == query_heads;
  const bool states_agree = key.extent(1) == tokens && key.extent(2) == head_dim && half * 2 <= head_dim;
  const bool table_fits = table.cosine.shape() == table.sine.shape() && position + tokens <= table.cosine.extent(0);
  if (!heads_agree || !states_agree || !table_fits)
    throw Error(ErrorCode::kInternal, "rope sums", "shapes of q, k and the rotation table do not fit each other");
}

void fill_components(const Context& context, const RopeOperands& in, const float* state, double sign, std::size_t first,
                     std::size_t count, double* out) {
  const std::size_t all = count * in.half;
  launch_kernel("components_of", components_of, {blocks_for(all)}, context.stream(), state, in.cosine, in.sine, first,
                in.tokens, in.head_dim, in.half, sign * in.factor, all, out);
}

}  // namespace kvs::cuda
