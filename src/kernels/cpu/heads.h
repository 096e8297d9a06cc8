// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/forward_ops.h"

namespace kvs::cpu {

/// ForwardOps::split_heads().
void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                 BackendView<float, 4> v, int threads);
/// ForwardOps::rope().
void rotate_heads(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position, RopeDirection direction,
                  std::span<const std::uint8_t> chunks, int threads);

}  // namespace kvs::cpu
