// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cuda/context.h"
#include "kernels/forward_ops.h"

namespace kvs::cuda {

struct SplitShape {
  std::size_t members, query_heads, kv_heads, tokens, head_dim;
};

/// Memory for the heads, [member, head, token, row]. A row is a head's channels, padded with zeros.
template <class T>
struct SplitTargets {
  T *q, *k, *v;
  std::size_t row;
};

/// Splits qkv as Backend::split_heads does. With a table, q and k are also rotated, to the same bits as Backend::rope.
/// T is float or __nv_bfloat16.
template <class T>
void split_heads(const Context& context, BackendView<const float, 2> qkv, const SplitShape& shape,
                 const RopeTable* table, std::size_t first_position, const SplitTargets<T>& to);

}  // namespace kvs::cuda
