// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/arithmetic.h"
#include "model/layer_weights.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

/// How a layer's weights are made.
struct Making {
  Backend& backend;
  const ModelTensors& tensors;
  std::size_t layer = 0;
  std::vector<std::string>* zero = nullptr;  // receives the names of projections whose weights are all zero
  Arithmetic arithmetic = {};
  float residual_scale = 1;        // multiplies the weights and biases of blocks' outputs
  std::size_t value_head_dim = 0;  // of values that are normalised; 0: they are not
};

/// Stacks projections into one matrix, so that one product computes all of them.
/// @param factor  multiplies weights and biases
/// @param expert  as in ModelTensors::rows()
std::unique_ptr<Weight> make_fused(const Making& making, std::span<const TensorRole> roles, float factor = 1,
                                   std::size_t expert = 0);

/// Makes a norm; nothing if the model has no such tensor. @param factor  multiplies the norm's result
NormWeights make_norm(const Making& making, TensorRole role, float factor = 1);

/// Makes all weights of the layer `making.layer`.
/// @throws Error kData if a weight is NaN or infinite (tensor, flat index, count)
LayerWeights make_layer(const Making& making, const LayerConfig& blocks);

}  // namespace kvs::inline model
