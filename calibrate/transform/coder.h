// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "caches/token_rows.h"
#include "calibrate/transform/products.h"
#include "kernels/coding_ops.h"

namespace kvs::inline calibrate {

/// Keys before RoPE and values of some tokens, [1, kv_head, token, head_dim].
struct TokenStates {
  BackendView<const float, 4> k, v;
};

/// The rows of some tokens that are coded, [1, head, token, value]: the coder's transform. CodingOps codes rows.
struct RowValues {
  BackendView<const float, 4> k;  // kLayer: [1, 1, token, coefficient] of keys and values; kHead: keys before RoPE
  BackendView<const float, 4> v;  // kHead: coefficients of values; kLayer: empty
  RowBuffer::Part memory;         // of the coefficients
};

/// Returns the rows of tokens.
/// @param layers  [layer of the group]; with kHead its keys are a part of the result
/// @param inputs  with a prediction: TokenInputs of the last tokens, [1, 1, token, d_model]; all tokens that are coded
RowValues row_values(CodingOps& ops, const TransformProducts& products, std::span<const TokenStates> layers,
                     const BackendView<const float, 4>& inputs = {});

/// Returns a layer's keys and values of decoded rows: the inverse of row_values(). kHead: @param rows  as RowValues
TokenRows::Part states_of(CodingOps& ops, const TransformProducts& products, TokenRows::Part rows);
/// kLayer: returns them from rows [1, 1, token, coefficient].
/// @param layer  of the group;  @param inputs  with a prediction: TokenInputs of these tokens
TokenRows::Part layer_states(CodingOps& ops, const TransformProducts& products, const BackendView<const float, 4>& rows,
                             std::size_t layer = 0, const BackendView<const float, 4>& inputs = {});

/// kHead: multiplies each head's values by its weight. v: [1, kv_head, token, head_dim].
RowBuffer::Part head_products(CodingOps& ops, const TransformProducts::Weights& weights,
                              const BackendView<const float, 4>& v);

/// kLayer: returns the error cost of each decoded row; row n is that of row `first` + n of `values`.
std::vector<double> error_costs(CodingOps& ops, const TransformProducts& products, const RowValues& values,
                                std::size_t first, const RowBuffer::Part& decoded);

/// Returns the error cost above which a token is an outlier, after `coded` coded tokens of which `outliers` are
/// outliers. It is the layer's threshold, doubled for each outlier beyond their share; infinite at kMoreOutliers of
/// them.
double outlier_threshold(const TransformProducts& products, std::size_t coded, std::size_t outliers);

/// Returns the format of the rows of outliers and of waiting tokens, [kv_head]: q8_0, or f16 for heads that do not fit
/// its blocks.
RowFormat outlier_format(std::size_t head_dim) noexcept;

/// Returns uninitialised keys and values of `tokens` tokens.
TokenRows::Part empty_part(DeviceMemory& memory, const TransformShape& shape, std::size_t tokens);

/// Overwrites rows of `to` [1, head, token, value] from `first` on with those of `from`.
void put_rows(DeviceMemory& memory, const BackendView<const float, 4>& from, const BackendView<float, 4>& to,
              std::size_t first);

}  // namespace kvs::inline calibrate
