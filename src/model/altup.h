// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/scratch.h"

namespace kvs::inline model {

struct ResidualStream;  // model/decoder.h

/// Alternating updates: several residual streams side by side, of which a layer computes the first. Before the layer
/// all streams are predicted from all streams; after the layer all are corrected by the difference between the first
/// one and its prediction. The coefficients of a token come from a router.
/// Source: Baykal et al. (2023), arXiv:2301.13310; Gemma 3n in Transformers 5.24 (Gemma3nTextAltUp).
/// Cost per layer and token: streams · (streams + 2) · d_model multiply-adds.
class AltUp {
 public:
  explicit AltUp(const Model& model);

  /// Makes the other streams of new tokens: projections of the first one, of the same root mean square.
  void begin(ResidualStream& hidden);
  void predict(ResidualStream& hidden, const StreamWeights& weights);
  /// Call it after predict() and the layer, with no other stream of tokens in between.
  void correct(ResidualStream& hidden, const StreamWeights& weights);
  /// Replaces the streams by one: the mean of the first and the projections of the others, all of the first one's root
  /// mean square.
  void end(ResidualStream& hidden);

 private:
  std::vector<float> router(BackendView<const float, 2> rows, const StreamWeights& weights);

  const Model* model_;
  Scratch x_;       // operand [row, d_model]
  Scratch logits_;  // f32 [row, stream]
  Scratch kept_;    // f32 [stream · row, d_model]: the streams before the prediction; then the first one's prediction
                    // and its error
};

}  // namespace kvs::inline model
