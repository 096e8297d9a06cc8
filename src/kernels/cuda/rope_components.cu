#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_components.cuh"

namespace kvs::cuda {
namespace {

/// out: [token, component, chunk]
__global__ void write_components(RopeOperands in, RopeSide side, std::size_t head, double* out) {
  const std::size_t i = global_index();
  if (i >= in.tokens * in.half) return;
  const std::size_t chunk = i % in.half, token = i / in.half;
  const RopeComponents from =
      side == RopeSide::kQuery ? query_components(in, head, token, chunk) : key_components(in, head, token, chunk);
  for (std::size_t m = 0; m < kComponents; ++m) out[(token * kComponents + m) * in.half + chunk] = from.value[m];
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

void fill_components(const Context& context, const RopeOperands& in, RopeSide side, std::size_t head, double* out) {
  launch_kernel("write_components", write_components, {blocks_for(in.tokens * in.half)}, context.stream(), in, side,
                head, out);
}

}  // namespace kvs::cuda
