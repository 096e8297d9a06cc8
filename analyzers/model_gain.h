// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analyzers/coding_gain.h"

namespace kvs::inline analyzers {

/// Coding gains of a model's layers. No layers: nothing could be computed; `left_out` has the reason.
struct ModelGains {
  MomentShape shape;
  std::size_t tokens = 0;                 // number of tokens summed
  std::vector<LayerGains> removed, kept;  // [layer]: about the means, about zero
  std::vector<std::string> left_out;      // missing quantities and their reasons
};

/// Returns true if `tokens` tokens suffice for gains of k_pre or v.
constexpr bool has_whole_gains(const MomentShape& shape, std::size_t tokens) noexcept {
  return tokens >= 2 * shape.head_dim && shape.whole_heads() > 0;
}

/// @param weights  returns the weights of a layer, by index; empty for states with unknown weights
ModelGains model_gains(const MomentSource& source, std::size_t documents,
                       const std::function<GainWeights(std::size_t)>& weights);

/// Apparent gain of each step on white noise: the optimism of its geometric mean minus that of the previous step.
struct GainOptimism {
  double channels = 0, head = 0, whole = 0, joint = 0;
  std::vector<double> tokens;  // [block length], each coefficient occurs once per block
};
GainOptimism gain_optimism(const ModelGains& gains);

/// Mean over layers of each step's gain of a state about the means, minus the step's optimism, at least 0. state: k_pre
/// or v, must have been measured.
struct StepMeans {
  double mean = 0, channels = 0, head = 0, whole = 0, tokens = 0;  // tokens: the longest block
  double idle_share = 0;
};
StepMeans step_means(const ModelGains& gains, StateKind state);
/// Like step_means(), for the joint KLT; 0 if it is absent.
double joint_mean(const ModelGains& gains);

}  // namespace kvs::inline analyzers
