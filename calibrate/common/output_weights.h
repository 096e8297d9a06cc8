// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// The weights that read and write a layer's keys and values.
struct AttentionMaps {
  std::size_t query_heads = 0, kv_heads = 0, head_dim = 0, d_model = 0;
  float scale = 1;                  // multiplies q·k before the softmax
  std::vector<float> query, value;  // W_q [query_heads · head_dim, d_model], W_v [kv_heads · head_dim, d_model]
  std::vector<float> output;        // W_o [d_model, query_heads · head_dim]
  std::vector<float> query_bias;    // [query_heads · head_dim] or empty

  std::size_t group() const noexcept { return query_heads / kv_heads; }
};

/// Cost of errors in keys and values at the attention's output, to first order and as if errors were independent
/// between tokens. An error ε of a value, read with weight 1 by the query heads h of its group, costs Σ_h ‖W_o,h ε‖².
/// An error ε of a key changes scores by scale · q·ε; with values of energy e_h = E‖W_o,h v‖² it costs Σ_h scale² e_h
/// E[(q_h·ε)²].
struct OutputWeights {
  std::vector<std::vector<double>> keys, values;  // [kv_head]: lower Cholesky factors, for the given rows
};

/// Returns W_o,hᵀ W_o,h of each query head: [query_head][head_dim, head_dim]. Reads only `output` and the sizes.
std::vector<std::vector<double>> output_grams(const AttentionMaps& maps);

/// @param rows     [kv_head]: the channels of the keys that are factorised
/// @param factor   L of the inputs (whitening_factor()) Both kinds of blocks are damped by 1e-3 of their mean diagonal.
/// This project's method; EliteKV's paper has no equivalent.
OutputWeights output_weights(CalibrationOps& ops, const AttentionMaps& maps,
                             std::span<const std::vector<std::size_t>> rows, std::span<const double> factor);

}  // namespace kvs::inline calibrate
