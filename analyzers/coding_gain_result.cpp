// SPDX-License-Identifier: Apache-2.0
#include "analyzers/coding_gain_result.h"

#include "analyzers/method_family.h"

namespace kvs::inline analyzers {
namespace {

using Steps = CodingGainResult::Steps;

void add(Steps& columns, const StepGains& steps) {
  columns.mean.push_back(steps.mean);
  columns.channels.push_back(steps.channels);
  columns.head.push_back(steps.head);
  if (columns.tokens) columns.tokens->push_back(steps.tokens);
  if (columns.tokens_by_channel) columns.tokens_by_channel->push_back(steps.tokens_by_channel);
}

/// Returns the gains of one state by layer and by head, weighted or not.
CodingGainResult::LayersAndHeads layers_and_heads(const std::vector<LayerGains>& gains, StateKind state,
                                                  bool weighted) {
  Steps none;
  if (!weighted && state != StateKind::kKPost) none.tokens = none.tokens_by_channel.emplace();
  CodingGainResult::LayersAndHeads result{none, {}};
  for (const LayerGains& layer : gains) {
    const StateGains& of_state = layer.states[state];
    add(result.layers, weighted ? *of_state.weighted_layer : of_state.layer);
    Steps& heads = result.heads.emplace_back(none);
    for (const StepGains& head : weighted ? of_state.weighted_heads : of_state.heads) add(heads, head);
  }
  return result;
}

CodingGainResult::State state_result(const std::vector<LayerGains>& gains, StateKind state) {
  CodingGainResult::State result{.all = layers_and_heads(gains, state, false)};
  Steps& layers = result.all.layers;
  layers.idle_share.emplace();
  if (state != StateKind::kKPost) layers.layer.emplace();
  for (const LayerGains& layer : gains) {
    if (layers.layer) layers.layer->push_back(layer.states[state].whole);
    layers.idle_share->push_back(layer.states[state].idle_share);
  }
  if (gains.front().states[state].weighted_layer) result.weighted = layers_and_heads(gains, state, true);
  return result;
}

CodingGainResult::States states_result(const std::vector<LayerGains>& gains, const StateSet& states) {
  CodingGainResult::States result;
  for (const StateKind state : states) result.states[state] = state_result(gains, state);
  for (const LayerGains& layer : gains) result.joint.push_back(layer.joint);
  return result;
}

}  // namespace

CodingGainResult coding_gain_result(const ModelGains& gains) {
  CodingGainResult result{.tokens = gains.tokens,
                          .first_token = gains.shape.first_token,
                          .kv_heads = gains.shape.kv_heads,
                          .head_dim = gains.shape.head_dim,
                          .finest_bits = kFinestBits,
                          .left_out = gains.left_out};
  if (gains.removed.empty()) return result;
  const GainOptimism noise = gain_optimism(gains);
  CodingGainResult::Measured& measured = *(result.measured = CodingGainResult::Measured{});
  measured.block_tokens = {kBlockTokens.begin(),
                           kBlockTokens.begin() + static_cast<std::ptrdiff_t>(noise.tokens.size())};
  measured.mean_removed = states_result(gains.removed, gains.shape.states);
  measured.mean_kept = states_result(gains.kept, gains.shape.states);
  measured.optimism = {noise.channels, noise.head, noise.whole, noise.joint, noise.tokens};
  measured.families = family_findings(gains);
  for (FamilyFinding& finding : measured.families)
    finding.words = family_words(finding, measured.block_tokens.empty() ? 0 : measured.block_tokens.back(), kIdleRate);
  return result;
}

}  // namespace kvs::inline analyzers
