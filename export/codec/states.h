// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "caches/token_rows.h"
#include "calibrate/transform/cache.h"
#include "kvspectrum/codec.h"

namespace kvs::inline exporting {

/// @throws Error kUsage for null pointers, an unknown type or `rotated` other than 0 and 1
void check_states(const kvs_codec_states& states);

/// @throws Error kUsage unless there are inputs with this number of channels, of a known type
void check_inputs(const kvs_codec_inputs* inputs, std::size_t channels);

/// Returns tokens [first, first + count) of checked inputs, [1, 1, token, channel] in f32; nothing without channels.
/// @throws Error kUsage for NaN or infinity
RowBuffer::Part gather_inputs(DeviceMemory& memory, const kvs_codec_inputs* inputs, std::size_t channels,
                              std::size_t first, std::size_t count, int threads);

/// Returns tokens [first, first + count) of checked states, in f32. @throws Error kUsage for NaN or infinity
TokenRows::Part gather_states(DeviceMemory& memory, const kvs_codec_states& states, const TransformShape& shape,
                              std::size_t first, std::size_t count, int threads);

/// Returns the queries [1, query_head, 1, head_dim] in f32. @throws Error kUsage unless they fit a layer of `shape`
RowBuffer::Part gather_queries(DeviceMemory& memory, const kvs_codec_queries& queries, const TransformShape& shape,
                               int threads);

/// Writes `part` to the tokens of checked states from `first` on, rounded to nearest even.
void scatter_states(const TokenRows::Part& part, const kvs_codec_states& states, std::size_t first, int threads);

}  // namespace kvs::inline exporting
