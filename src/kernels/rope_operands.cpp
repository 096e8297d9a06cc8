// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope_operands.h"

#include "core/error.h"

namespace kvs::inline kernels {

RopeOperands::RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
                           std::size_t first_position)
    : q(query.data()),
      k(key.data()),
      cosine(table.cosine.data() + first_position * table.cosine.extent(1)),
      sine(table.sine.data() + first_position * table.sine.extent(1)),
      factor(table.factor),
      query_heads(query.extent(0)),
      kv_heads(key.extent(0)),
      group(kv_heads == 0 ? 0 : query_heads / kv_heads),
      tokens(query.extent(1)),
      head_dim(query.extent(2)),
      half(table.cosine.extent(1)) {
  const bool heads_agree = kv_heads > 0 && group * kv_heads == query_heads;
  const bool states_agree = key.extent(1) == tokens && key.extent(2) == head_dim && half * 2 <= head_dim;
  const bool table_fits =
      table.cosine.shape() == table.sine.shape() && first_position + tokens <= table.cosine.extent(0);
  if (!heads_agree || !states_agree || !table_fits)
    throw Error(ErrorCode::kInternal, "rope sums", "shapes of q, k and the rotation table do not fit each other");
}

}  // namespace kvs::inline kernels
