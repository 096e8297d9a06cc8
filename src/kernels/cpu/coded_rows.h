// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "kernels/attention_ops.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/simd/loops.h"

namespace kvs::cpu {

/// Describes rows of one head to encode or decode. Bytes of rows that are only read stay unwritten.
CodedRows coded(const StoredRows& held, std::size_t member, std::size_t head, std::size_t first, std::size_t count,
                const float* x, float* scratch, bool in_basis = false);

/// Returns the scratch floats of coded().
std::size_t scratch_floats(const StoredRows& rows);

/// AttentionOps::encode_rows() and decode_rows().
/// @param scratch  [thread]: grows as needed; the rows are divided among this number of threads
void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count, const StoredRows& held,
                 std::size_t at, std::span<AlignedBuffer> scratch);
void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out,
                 std::span<AlignedBuffer> scratch);

}  // namespace kvs::cpu
