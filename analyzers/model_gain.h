#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analyzers/coding_gain.h"

namespace kvs {

/// Coding gains of a model's layers. Without layers nothing could be said, for a reason in `left_out`.
struct ModelGains {
  MomentShape shape;
  std::size_t tokens = 0;                 // that were summed
  std::vector<LayerGains> removed, kept;  // [layer]: about the means, about zero
  std::vector<std::string> left_out;      // what is missing and why
};

/// Whether so many tokens tell gains of k_pre or v.
constexpr bool has_whole_gains(const MomentShape& shape, std::size_t tokens) noexcept {
  return tokens >= 2 * shape.head_dim && shape.whole_heads() > 0;
}

/// @param weights  of a layer by position; nothing for states whose weights are not known
ModelGains model_gains(const MomentSource& source, std::size_t documents,
                       const std::function<GainWeights(std::size_t)>& weights);

/// What each step would seem to save of white noise: the optimism of its geometric mean less that of the step before.
struct GainOptimism {
  double channels = 0, head = 0, whole = 0, joint = 0;
  std::vector<double> tokens;  // [block length]: a coefficient is seen once a block
};
GainOptimism gain_optimism(const ModelGains& gains);

/// Mean over layers of what each step saves of a state once the means are gone, less the step's optimism and never
/// below 0. state: k_pre or v, and measured.
struct StepMeans {
  double mean = 0, channels = 0, head = 0, whole = 0, tokens = 0;  // tokens: the longest block
  double idle_share = 0;
};
StepMeans step_means(const ModelGains& gains, StateKind state);
/// The same of the joint KLT; 0 where it is absent.
double joint_mean(const ModelGains& gains);

}  // namespace kvs
