#include "analyzers/model_gain.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kvs {
namespace {

/// Mean over layers of `value`, less what white noise would show.
double mean_over_layers(const ModelGains& gains, double optimistic,
                        const std::function<double(const LayerGains&)>& value) {
  double sum = 0;
  for (const LayerGains& layer : gains.removed) sum += value(layer);
  return std::max(0.0, sum / static_cast<double>(gains.removed.size()) - optimistic);
}

Verdict verdict_of(double value, double pays, double idle) {
  if (value >= pays) return Verdict::kPays;
  return value < idle ? Verdict::kCannotPay : Verdict::kHardlyPays;
}

Verdict opposite(Verdict verdict) {
  if (verdict == Verdict::kHardlyPays) return verdict;
  return verdict == Verdict::kPays ? Verdict::kCannotPay : Verdict::kPays;
}

}  // namespace

ModelGains model_gains(const MomentSource& source, std::size_t documents,
                       const std::function<GainWeights(std::size_t)>& weights) {
  const MomentShape& shape = source.shape();
  ModelGains gains{.shape = shape, .tokens = documents * shape.counted(), .removed = {}, .kept = {}, .left_out = {}};
  const auto too_few = [&](const std::string& what, std::size_t width) {
    if (gains.tokens >= 2 * width) return false;
    gains.left_out.push_back(what + ": found " + std::to_string(gains.tokens) + " tokens, expected at least " +
                             std::to_string(2 * width) + ", two for each of its channels");
    return true;
  };
  if (too_few("everything", shape.head_dim)) return gains;
  const std::size_t width = shape.kv_heads * shape.head_dim, whole = shape.whole_heads() * shape.head_dim;
  if (whole > 0) too_few("the KLT of a layer", width);
  if (whole > width) too_few("the KLT of keys and values", whole);
  for (std::size_t layer = 0; layer < source.moments().size(); ++layer) {
    const GainWeights of_layer = weights(layer);
    gains.removed.push_back(coding_gains(source.moments()[layer], shape, documents, true, of_layer));
    gains.kept.push_back(coding_gains(source.moments()[layer], shape, documents, false, of_layer));
  }
  return gains;
}

GainOptimism gain_optimism(const ModelGains& gains) {
  const auto tokens = static_cast<double>(gains.tokens);
  const std::size_t width = gains.shape.kv_heads * gains.shape.head_dim;
  const auto of = [&](std::size_t channels) {
    return tokens >= 2.0 * static_cast<double>(channels) ? optimism(channels, tokens) : 0;
  };
  GainOptimism result{
      .channels = of(1), .head = of(gains.shape.head_dim) - of(1), .whole = 0, .joint = 0, .tokens = {}};
  if (of(width) > 0) result.whole = of(width) - of(gains.shape.head_dim);
  if (of(2 * width) > 0) result.joint = of(2 * width) - of(width);
  for (const std::size_t block : kBlockTokens)
    if (block <= gains.shape.lags()) result.tokens.push_back(optimism(1, tokens / static_cast<double>(block)) - of(1));
  return result;
}

StepMeans step_means(const ModelGains& gains, StateKind state) {
  const GainOptimism noise = gain_optimism(gains);
  const auto mean = [&](double optimistic, auto&& value) {
    return mean_over_layers(gains, optimistic, [&](const LayerGains& layer) { return value(layer.states[state]); });
  };
  return {.mean = mean(0, [](const StateGains& of) { return of.layer.mean; }),
          .channels = mean(noise.channels, [](const StateGains& of) { return of.layer.channels; }),
          .head = mean(noise.head, [](const StateGains& of) { return of.layer.head; }),
          .whole = mean(noise.whole, [](const StateGains& of) { return of.whole.value_or(0); }),
          .tokens = noise.tokens.empty()
                        ? 0
                        : mean(noise.tokens.back(), [](const StateGains& of) { return of.layer.tokens.back(); }),
          .idle_share = mean(0, [](const StateGains& of) { return of.idle_share; })};
}

double joint_mean(const ModelGains& gains) {
  return mean_over_layers(gains, gain_optimism(gains).joint,
                          [](const LayerGains& layer) { return layer.joint.value_or(0); });
}

std::vector<FamilyFinding> family_findings(const ModelGains& gains) {
  std::vector<std::pair<StateKind, StepMeans>> states;
  for (const StateKind state : {StateKind::kKPre, StateKind::kV})
    if (gains.shape.states.contains(state) && !gains.removed.empty())
      states.emplace_back(state, step_means(gains, state));
  std::vector<FamilyFinding> findings;
  if (states.empty()) return findings;
  const auto add = [&](MethodFamily family, double pays, double idle, auto&& value) {
    FamilyFinding& finding = findings.emplace_back(FamilyFinding{family, {}, Verdict::kCannotPay});
    double largest = 0;
    for (const auto& [state, steps] : states) {
      finding.saves.emplace_back(state, value(steps));
      largest = std::max(largest, finding.saves.back().second);
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

}  // namespace kvs
