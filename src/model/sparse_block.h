// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/model.h"
#include "model/routing.h"
#include "model/scratch.h"

namespace kvs::inline model {

/// A feed-forward block of experts. The tokens of all members are grouped by expert, so that each expert's matrices are
/// read once for all its tokens. Those of an expert that no token chose are not read.
class SparseBlock {
 public:
  explicit SparseBlock(Backend& backend)
      : backend_(&backend),
        gathered_(backend),
        x_(backend),
        activated_(backend),
        latent_(backend),
        latent_x_(backend),
        out_(backend) {}

  /// Adds the block's output for `x` to `sum`. x: the normalised input; routed: the router's; sum: [row, d_model].
  void add(const Operand& x, const Operand& routed, const ExpertWeights& weights, const ExpertsConfig& experts,
           Activation activation, const BackendView<float, 2>& sum);

 private:
  BackendView<float, 2> run(const Operand& x, const MlpWeights& mlp, Activation activation,
                            const SwigluClamp& clamp = {});
  std::vector<float> logits(const Operand& x, const Weight& weight);
  void add_chosen(const Operand& x, std::span<const ExpertTokens> chosen, const ExpertWeights& weights,
                  const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum);
  void add_latent(const Operand& x, std::span<const ExpertTokens> chosen, const ExpertWeights& weights,
                  const ExpertsConfig& experts, Activation activation, const BackendView<float, 2>& sum);
  void add_shared(const Operand& x, const ExpertWeights& weights, Activation activation,
                  const BackendView<float, 2>& sum);

  Backend* backend_;
  Scratch gathered_;   // f32 [token of an expert, d_model]
  Scratch x_;          // operand, the same
  Scratch activated_;  // operand [token of an expert, width]
  Scratch latent_;     // f32 [token, latent]
  Scratch latent_x_;   // operand, the same
  Scratch out_;        // f32 [token of an expert, d_model], or logits
};

}  // namespace kvs::inline model
