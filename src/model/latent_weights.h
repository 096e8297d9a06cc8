// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "model/model_tensors.h"

namespace kvs::inline model {

/// Makes the matrices that map a head's queries to latents: W_kᵀ, [query_head] of [rank, plain_dim].
/// @param keys        W_k of all heads: [heads · plain_dim, rank], or
/// @param transposed  true: W_kᵀ of all heads: [heads · rank, plain_dim]
std::vector<std::unique_ptr<Weight>> make_key_maps(Backend& backend, const TensorRows& keys, bool transposed,
                                                   const AttentionConfig& config);

/// Makes the matrices that map latents to a head's values: W_v, [query_head] of [value_dim, rank].
/// @param values  W_v of all heads: [heads · value_dim, rank]
std::vector<std::unique_ptr<Weight>> make_value_maps(Backend& backend, const TensorRows& values,
                                                     const AttentionConfig& config);

/// Returns the output projection of attended rows: its product with W_v of each head, 0 in the channels of the shared
/// key. Cost: d_model · heads · value_dim · rank multiply-adds.
/// @param output  [d_model, heads · value_dim]
/// @return [d_model, heads · head_dim]
std::vector<float> absorbed_output(const TensorRows& output, const TensorRows& values, const AttentionConfig& config);

}  // namespace kvs::inline model
