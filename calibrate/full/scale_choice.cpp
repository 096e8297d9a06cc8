// SPDX-License-Identifier: Apache-2.0
#include "calibrate/full/scale_choice.h"

#include <algorithm>

#include "calibrate/cache_choice.h"
#include "draw/numbers.h"
#include "eval/evaluation.h"

namespace kvs::inline calibrate {

Json RuleLoss::to_json() const {
  Json row{{"scale", kScaleRuleNames[static_cast<std::size_t>(rule)]}, {"saturated", saturated}};
  if (kl) row["kl"] = *kl;
  return row;
}

std::vector<RuleLoss> rule_losses(Decoder& decoder, const KvScales& scales,
                                  std::span<const std::vector<std::int32_t>> documents,
                                  const std::function<void(std::size_t, std::size_t)>& done) {
  const ModelConfig& model = decoder.model().config();
  const std::size_t most = kScaleRuleNames.size() * documents.size();
  std::vector<RuleLoss> losses;
  std::vector<Json> seen;
  for (std::size_t n = 0; n < kScaleRuleNames.size(); ++n) {
    const auto rule = static_cast<ScaleRule>(n);
    Json parameters = scales.parameters(rule);
    if (std::ranges::find(seen, parameters) != seen.end()) continue;
    const CacheChoice choice{.method = &kFullMethod, .parameters = {{parameters, "", ErrorCode::kInternal}}};
    const EvaluationPlan plan{.make = cache_maker(choice, decoder.model().backend(), model, documents.front().size()),
                              .compare = true};
    const Evaluation found =
        evaluate(decoder, documents, plan, [&](std::size_t one) { done(n * documents.size() + one, most); });
    const Divergence& divergence = found.full->divergence;
    losses.push_back({rule, divergence.kl / static_cast<double>(divergence.tokens), scales.share_saturated(rule)});
    seen.push_back(std::move(parameters));
  }
  return losses;
}

ScaleRule best_rule(std::span<const RuleLoss> losses) {
  return std::ranges::min_element(losses, [](const RuleLoss& a, const RuleLoss& b) { return *a.kl < *b.kl; })->rule;
}

std::string scales_text(const std::string& types, std::size_t layers, ScaleRule rule,
                        std::span<const RuleLoss> losses) {
  const auto name = [](ScaleRule one) { return std::string(kScaleRuleNames[static_cast<std::size_t>(one)]); };
  std::string text = types + " scales of " + std::to_string(layers) + " layers, by " + name(rule) + '\n';
  for (const RuleLoss& loss : losses)
    text += "  " + name(loss.rule) + ": " + (loss.kl ? "KL divergence " + draw::shown(*loss.kl) + ", " : "") +
            draw::shown_percent(loss.saturated) + " of the values saturate\n";
  return text;
}

}  // namespace kvs::inline calibrate
