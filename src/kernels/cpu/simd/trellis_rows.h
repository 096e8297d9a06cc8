// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/loops.h"

// Rows of RowKind::kTrellis, with the bits of codecs::Trellis.
namespace kvs::cpu {
inline namespace KVS_ISA {

/// @param bytes  of a row
void encode_trellis(const CodedRows& coded, std::size_t bytes) noexcept;
void decode_trellis(const CodedRows& coded, std::size_t bytes) noexcept;

}  // namespace KVS_ISA
}  // namespace kvs::cpu
