// SPDX-License-Identifier: Apache-2.0
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

void fill_components(const Context& context, const RopeOperands& in, RopeSide side, std::size_t head, double* out) {
  launch_kernel("write_components", write_components, {blocks_for(in.tokens * in.half)}, context.stream(), in, side,
                head, out);
}

}  // namespace kvs::cuda
