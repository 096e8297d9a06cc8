#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace kvs::cuda {

struct SplitShape {
  std::size_t members, query_heads, kv_heads, tokens, head_dim;
};

/// Where the heads go, [member, head, token, row]: a row is a head's channels, filled up with zeros.
template <class T>
struct SplitTargets {
  T *q, *k, *v;
  std::size_t row;
};

/// qkv as Backend::split_heads takes it. With a table q and k are rotated on the way, to the bits of Backend::rope. T
/// is float or __nv_bfloat16.
template <class T>
void split_heads(const Context& context, BackendView<const float, 2> qkv, const SplitShape& shape,
                 const RopeTable* table, std::size_t first_position, const SplitTargets<T>& to);

}  // namespace kvs::cuda
