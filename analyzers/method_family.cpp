// SPDX-License-Identifier: Apache-2.0
#include "analyzers/method_family.h"

#include <algorithm>

namespace kvs::inline analyzers {
namespace {

FamilyVerdict verdict_of(double value, double pays, double idle) {
  if (value >= pays) return FamilyVerdict::kPays;
  return value < idle ? FamilyVerdict::kCannotPay : FamilyVerdict::kHardlyPays;
}

FamilyVerdict opposite(FamilyVerdict verdict) {
  if (verdict == FamilyVerdict::kHardlyPays) return verdict;
  return verdict == FamilyVerdict::kPays ? FamilyVerdict::kCannotPay : FamilyVerdict::kPays;
}

}  // namespace

std::vector<FamilyFinding> family_findings(const ModelGains& gains) {
  std::vector<std::pair<StateKind, StepMeans>> states;
  for (const StateKind state : {StateKind::kKPre, StateKind::kV})
    if (gains.shape.states.contains(state) && !gains.removed.empty())
      states.emplace_back(state, step_means(gains, state));
  std::vector<FamilyFinding> findings;
  if (states.empty()) return findings;
  const auto add = [&](MethodFamily family, double pays, double idle, auto&& value) {
    FamilyFinding& finding = findings.emplace_back(FamilyFinding{.family = family});
    double largest = 0;
    for (const auto& [state, steps] : states) {
      finding.saves[state] = value(steps);
      largest = std::max(largest, *finding.saves[state]);
    }
    finding.verdict = verdict_of(largest, pays, idle);
  };
  const double joint = joint_mean(gains);
  const auto add_bits = [&](MethodFamily family, auto&& value) { add(family, kPayingBits, kIdleBits, value); };
  add_bits(MethodFamily::kMean, [](const StepMeans& steps) { return steps.mean; });
  add_bits(MethodFamily::kTokens, [](const StepMeans& steps) { return steps.tokens; });
  add_bits(MethodFamily::kChannels, [](const StepMeans& steps) { return steps.channels; });
  add_bits(MethodFamily::kTransform, [](const StepMeans& steps) { return steps.head + steps.whole; });
  add(MethodFamily::kLowRank, kPayingShare, kIdleShare, [](const StepMeans& steps) { return steps.idle_share; });
  if (states.size() == 2 && gains.removed.front().joint)
    add_bits(MethodFamily::kJoint, [&](const StepMeans&) { return joint; });
  add_bits(MethodFamily::kPlain, [&](const StepMeans& steps) {
    return steps.mean + steps.tokens + steps.channels + steps.head + steps.whole + joint;
  });
  findings.back().verdict = opposite(findings.back().verdict);
  return findings;
}

}  // namespace kvs::inline analyzers
