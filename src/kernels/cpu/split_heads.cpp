// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/heads.h"

namespace kvs::cpu {
namespace {

/// @param from  the part of one token's row with the heads of `to`; @param to  [member, head, token, head_dim]
void scatter(const float* from, const BackendView<float, 4>& to, std::size_t member, std::size_t token) {
  const auto [members, heads, tokens, head_dim] = to.shape();
  for (std::size_t head = 0; head < heads; ++head) {
    std::memcpy(to.data() + ((member * heads + head) * tokens + token) * head_dim, from + head * head_dim,
                head_dim * sizeof(float));
  }
}

}  // namespace

void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                 BackendView<float, 4> v, int threads) {
  const std::size_t members = q.extent(0), query_heads = q.extent(1), tokens = q.extent(2), head_dim = q.extent(3),
                    kv_heads = k.extent(1), columns = (query_heads + 2 * kv_heads) * head_dim;
  require(k.shape() == v.shape() && k.extent(0) == members && k.extent(2) == tokens && k.extent(3) == head_dim,
          "split_heads", "k and v of q's members, tokens and head_dim");
  require(qkv.extent(0) == members * tokens && qkv.extent(1) == columns, "split_heads",
          "qkv of [member · token, (H + 2G) · head_dim]");
  const std::size_t rows = members * tokens;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = qkv.data() + row * columns;
    const std::size_t member = row / tokens, token = row % tokens;
    scatter(from, q, member, token);
    scatter(from + query_heads * head_dim, k, member, token);
    scatter(from + (query_heads + kv_heads) * head_dim, v, member, token);
  }
}

}  // namespace kvs::cpu

namespace kvs::inline kernels {

void CpuBackend::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                             BackendView<float, 4> v) {
  cpu::split_heads(qkv, q, k, v, threads_);
}

}  // namespace kvs::inline kernels
