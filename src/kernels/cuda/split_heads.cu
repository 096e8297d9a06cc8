#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"

namespace kvs {
namespace cuda {
namespace {

struct SplitShape {
  std::size_t query_heads, kv_heads, tokens, head_dim;
};

/// One thread a value of qkv; neighbours read and write neighbours.
__global__ void split_values(const float* qkv, std::size_t count, SplitShape shape, float* q, float* k, float* v) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t heads = shape.query_heads + 2 * shape.kv_heads;
  const std::size_t channel = i % shape.head_dim, row = i / shape.head_dim / heads;
  const std::size_t member = row / shape.tokens, token = row % shape.tokens;
  std::size_t head = i / shape.head_dim % heads, of = shape.query_heads;
  float* to = q;
  if (head >= shape.query_heads) {
    head -= shape.query_heads;
    of = shape.kv_heads;
    to = head < shape.kv_heads ? k : v;
    head %= shape.kv_heads;
  }
  to[((member * of + head) * shape.tokens + token) * shape.head_dim + channel] = qkv[i];
}

}  // namespace
}  // namespace cuda

void CudaBackend::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                              BackendView<float, 4> v) {
  const auto [members, query_heads, tokens, head_dim] = q.shape();
  const std::size_t kv_heads = k.extent(1), columns = (query_heads + 2 * kv_heads) * head_dim;
  cuda::require(k.shape() == v.shape() && k.extent(0) == members && k.extent(2) == tokens && k.extent(3) == head_dim,
                "split_heads", "k and v of q's members, tokens and head_dim");
  cuda::require(qkv.extent(0) == members * tokens && qkv.extent(1) == columns, "split_heads",
                "qkv of [member · token, (H + 2G) · head_dim]");
  if (qkv.empty()) return;
  cuda::launch_kernel("split_values", cuda::split_values, {cuda::blocks_for(qkv.size())}, context_.stream(), qkv.data(),
                      qkv.size(), {query_heads, kv_heads, tokens, head_dim}, q.data(), k.data(), v.data());
}

}  // namespace kvs
