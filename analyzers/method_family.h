#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/model_gain.h"

namespace kvs {

/// Families of methods, by where they find what they save.
enum class MethodFamily { kMean, kTokens, kChannels, kTransform, kLowRank, kJoint, kPlain };
inline constexpr std::array<std::string_view, 7> kMethodFamilyNames{"mean",     "tokens", "channels", "transform",
                                                                    "low_rank", "joint",  "plain"};
enum class FamilyVerdict { kPays, kHardlyPays, kCannotPay };
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
  FamilyVerdict verdict;                            // of the larger; plain: cannot pay where it leaves kPayingBits
};
/// Empty where neither k_pre nor v was measured.
std::vector<FamilyFinding> family_findings(const ModelGains& gains);

}  // namespace kvs
