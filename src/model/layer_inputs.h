// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "model/model.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

/// The inputs that layers have of their own: each token's second embedding and a projection of its first one, summed
/// and cut into one part for each layer. The table of embeddings stays in the model's files: a token's row is read when
/// it is needed, so that the table takes no memory.
/// Source: Gemma 3n and Gemma 4 in Transformers 5 (get_per_layer_inputs, project_per_layer_inputs).
class LayerInputs {
 public:
  /// @param tensors  must outlive this
  LayerInputs(const ModelTensors& tensors, const ModelConfig& config, Backend& backend);

  /// Returns the parts: [layer, token, width]. @param embedded  token embeddings, [token, d_model]
  /// @throws Error kInput for an id outside the table
  std::shared_ptr<const BackendTensor<float, 3>> of(std::span<const std::int32_t> tokens,
                                                    BackendView<const float, 2> embedded) const;

 private:
  std::vector<float> projected(BackendView<const float, 2> embedded) const;
  std::vector<float> looked_up(std::span<const std::int32_t> tokens) const;

  Backend* backend_;
  std::size_t layers_, width_;
  float epsilon_;
  bool first_for_others_;               // tokens beyond the table have the first row
  TensorRows table_;                    // [vocabulary, layers · width]
  std::unique_ptr<Weight> projection_;  // [layers · width, d_model]
  BackendTensor<float, 1> gain_;        // [width]
};

}  // namespace kvs::inline model
