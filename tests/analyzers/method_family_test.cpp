// SPDX-License-Identifier: Apache-2.0
#include "analyzers/method_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kvs {
namespace {

/// Two layers of k_pre and v with these gains in one layer and none in the other, and so many tokens that optimism is
/// nil.
ModelGains gains_with(const StateGains& keys, const StateGains& values, std::optional<double> joint) {
  ModelGains gains;
  gains.shape = {.states = {StateKind::kKPre, StateKind::kV}, .kv_heads = 2, .head_dim = 4, .tokens = 64};
  gains.tokens = 1'000'000'000;
  gains.removed.resize(2);
  for (LayerGains& layer : gains.removed)
    for (const StateKind state : gains.shape.states) layer.states[state].layer.tokens.assign(kBlockTokens.size(), 0);
  gains.removed[0].states[StateKind::kKPre] = keys;
  gains.removed[0].states[StateKind::kV] = values;
  gains.removed[0].joint = joint;
  gains.kept = gains.removed;
  return gains;
}

StateGains state_gains_of(double mean, double channels, double head, double whole, double tokens, double idle) {
  StateGains gains;
  gains.layer = {
      .mean = mean, .channels = channels, .head = head, .tokens = {0, 0, 0, tokens}, .tokens_by_channel = {}};
  gains.whole = whole;
  gains.idle_share = idle;
  return gains;
}

const FamilyFinding& finding_of(const std::vector<FamilyFinding>& findings, MethodFamily family) {
  return *std::ranges::find(findings, family, &FamilyFinding::family);
}

// Means over two layers are half of these. The thresholds are 0.25 and 0.1.
TEST(MethodFamily, VerdictsFollowTheLargerStatesMeanOverLayers) {
  const ModelGains gains =
      gains_with(state_gains_of(0.52, 0.1, 0.1, 0.42, 0.18, 0), state_gains_of(0, 0.22, 0, 0, 0, 0.6), 0.3);
  const std::vector<FamilyFinding> findings = family_findings(gains);
  const auto verdict = [&](MethodFamily family) { return finding_of(findings, family).verdict; };
  EXPECT_EQ(verdict(MethodFamily::kMean), FamilyVerdict::kPays);            // 0.26
  EXPECT_EQ(verdict(MethodFamily::kTokens), FamilyVerdict::kCannotPay);     // 0.09
  EXPECT_EQ(verdict(MethodFamily::kChannels), FamilyVerdict::kHardlyPays);  // 0.11, of v
  EXPECT_EQ(verdict(MethodFamily::kTransform), FamilyVerdict::kPays);       // (0.1 + 0.42) / 2
  EXPECT_EQ(verdict(MethodFamily::kLowRank), FamilyVerdict::kPays);         // 30 %, of v
  EXPECT_EQ(verdict(MethodFamily::kJoint), FamilyVerdict::kHardlyPays);     // 0.15
  EXPECT_EQ(verdict(MethodFamily::kPlain), FamilyVerdict::kCannotPay);      // leaves 0.81
  EXPECT_NEAR(*finding_of(findings, MethodFamily::kPlain).saves[StateKind::kKPre],
              (0.52 + 0.1 + 0.1 + 0.42 + 0.18 + 0.3) / 2, 1e-6);
}

TEST(MethodFamily, PlainQuantisationPaysWhereNothingElseDoes) {
  const ModelGains gains =
      gains_with(state_gains_of(0, 0, 0.1, 0, 0, 0), state_gains_of(0, 0, 0, 0, 0, 0), std::nullopt);
  const std::vector<FamilyFinding> findings = family_findings(gains);
  EXPECT_EQ(finding_of(findings, MethodFamily::kPlain).verdict, FamilyVerdict::kPays);
  EXPECT_TRUE(
      std::ranges::none_of(findings, [](const auto& finding) { return finding.family == MethodFamily::kJoint; }));
}

TEST(MethodFamily, WhatWhiteNoiseWouldShowDoesNotCount) {
  ModelGains gains = gains_with(state_gains_of(0, 0, 0.3, 0, 0, 0), state_gains_of(0, 0, 0, 0, 0, 0), std::nullopt);
  gains.tokens = 64;
  const double noise = gain_optimism(gains).head;
  EXPECT_GT(noise, 0.01);
  EXPECT_NEAR(step_means(gains, StateKind::kKPre).head, 0.15 - noise, 1e-12);
  EXPECT_EQ(step_means(gains, StateKind::kV).head, 0);
}

TEST(MethodFamily, NeedsKeysBeforeRopeOrValues) {
  ModelGains gains;
  gains.shape.states = {StateKind::kKPost};
  gains.removed.resize(1);
  EXPECT_TRUE(family_findings(gains).empty());
}

}  // namespace
}  // namespace kvs
