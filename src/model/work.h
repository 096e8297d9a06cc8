// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "model/config.h"

namespace kvs::inline model {

// FLOPs and memory of forward passes, from a model's shapes alone.

/// Returns the channels of all query heads of all layers.
std::size_t mixed_channels(const ModelConfig& model);
/// Returns the number of weights of a layer's matrices.
double layer_values(const ModelConfig& model, std::size_t layer);
/// Returns the multiply-adds of a token in a layer's matrices, a mean over layers.
double layer_products(const ModelConfig& model);
/// Returns the multiply-adds of a token in all layers' matrices and the language-model head.
double products_per_token(const ModelConfig& model);
/// FLOPs of one layer, a mean over layers, and of the language-model head, for `tokens` new tokens after `past` others.
double layer_flops(const ModelConfig& model, double tokens, double past = 0);
double head_flops(const ModelConfig& model, double tokens);
/// FLOPs of a forward pass, with the head, over `tokens` tokens of one sequence.
double forward_flops(const ModelConfig& model, double tokens);
/// Bytes of a forward pass over one sequence of `tokens`: the weights and one layer's activations.
double pass_memory(const ModelConfig& model, double weight_bytes, std::size_t tokens);
/// Bytes of an ablation: a pass over a document, and a batch of variants with 4,096 rows or one document.
double ablation_memory(const ModelConfig& model, double weight_bytes, std::size_t tokens);

}  // namespace kvs::inline model
