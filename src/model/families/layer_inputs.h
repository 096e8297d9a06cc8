// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "model/families/tensors.h"
#include "model/parsed_config.h"

/// The common parts of Gemma 3n and Gemma 4: inputs of layers, and layers that read other layers' keys and values.
namespace kvs::tensors {

inline constexpr std::array kInputs{
    TensorSpec{kInputEmbedding, "model.embed_tokens_per_layer", "per_layer_token_embd", kInputVocabulary, kLayerInputs},
    TensorSpec{kInputProjection, "model.per_layer_model_projection", "per_layer_model_proj", kLayerInputs, kModel},
    TensorSpec{kInputProjectionNorm, "model.per_layer_projection_norm", "per_layer_proj_norm", kLayerInput, kNone}};
inline constexpr std::array kInputOfLayer{
    TensorSpec{kInputGate, "model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate", kLayerInput, kModel},
    TensorSpec{kInputOutput, "model.layers.{}.per_layer_projection", "blk.{}.proj", kModel, kLayerInput},
    TensorSpec{kInputOutputNorm, "model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm", kModel, kNone}};

}  // namespace kvs::tensors

namespace kvs::inline model {

/// The error of a model for which share_kv_layers() is false.
inline constexpr std::string_view kSourceMissing = "fewer: an earlier layer of each type has keys and values";

/// Lets the last `shared` layers read keys and values of the last earlier layer of their type, full or local. `config`
/// must have its layers and windows. @return false if there is no such layer
bool share_kv_layers(std::size_t shared, ModelConfig& config);

/// Does the same for a GGUF. @param otherwise  `shared` if the file does not state it. @throws Error kInput
void read_gguf_shared_rows(const GgufKeys& keys, std::size_t otherwise, ModelConfig& config);

}  // namespace kvs::inline model
