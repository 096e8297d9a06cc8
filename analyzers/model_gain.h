#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
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

/// Families of methods, by where they find what they save.
enum class MethodFamily { kMean, kTokens, kChannels, kTransform, kLowRank, kJoint, kPlain };
inline constexpr std::array<std::string_view, 7> kMethodFamilyNames{"mean",     "tokens", "channels", "transform",
                                                                    "low_rank", "joint",  "plain"};
enum class Verdict { kPays, kHardlyPays, kCannotPay };
inline constexpr std::array<std::string_view, 3> kVerdictNames{"can pay", "can hardly pay", "cannot pay"};

/// Bits a real from which a family can pay, and below which it cannot: at 2 to 4 bits a real, 0.25 bit is 6 to 12 % of
/// the bytes, and 0.1 less than what two codecs of the same kind differ by. Ours.
inline constexpr double kPayingBits = 0.25, kIdleBits = 0.1;
/// The same for the share of components without bits, which low rank drops. Ours.
inline constexpr double kPayingShare = 0.25, kIdleShare = 0.1;

/// What a family can save, in bits a real of each state (low_rank: idle shares; plain: what all others find together,
/// which quantisation as it is leaves).
struct FamilyFinding {
  MethodFamily family;
  std::vector<std::pair<StateKind, double>> saves;  // k_pre, v; joint: of both, under each
  Verdict verdict;                                  // of the larger; plain: cannot pay where it leaves kPayingBits
};
/// Empty where neither k_pre nor v was measured.
std::vector<FamilyFinding> family_findings(const ModelGains& gains);

}  // namespace kvs
