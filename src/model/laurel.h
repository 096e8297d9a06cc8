// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/model.h"
#include "model/scratch.h"

namespace kvs::inline model {

/// A learned augmented residual layer: a map of low rank, parallel to the attention block.
/// Source: Menghani et al. (2024), arXiv:2411.07501; Gemma 3n in Transformers 5.24 (Gemma3nTextLaurelBlock).
class Laurel {
 public:
  explicit Laurel(Backend& backend) : backend_(&backend), low_(backend), low_x_(backend), high_(backend) {}

  /// sum += x + norm(up (down x)). x: the attention block's normalised input; sum: [row, d_model].
  void add(const Operand& x, const LaurelWeights& weights, float epsilon, const BackendView<float, 2>& sum);

 private:
  Backend* backend_;
  Scratch low_;    // f32 [row, rank]
  Scratch low_x_;  // operand, the same
  Scratch high_;   // f32 [row, d_model]
};

}  // namespace kvs::inline model
