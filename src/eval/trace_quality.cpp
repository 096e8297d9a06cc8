// SPDX-License-Identifier: Apache-2.0
#include "eval/trace_quality.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "eval/cache_quality.h"
#include "eval/paired_difference.h"

namespace kvs::inline eval {
namespace {

constexpr double kConfidence = 0.95;

/// Values of each prompt, in the order of the prompts.
template <class Value>
std::vector<double> of_prompts(std::span<const TraceOutcome> outcomes, Value value) {
  std::vector<double> values;
  values.reserve(outcomes.size());
  for (const TraceOutcome& outcome : outcomes) values.push_back(static_cast<double>(value(outcome)));
  return values;
}

double mean_of(const std::vector<double>& values) { return paired_mean(values).mean; }

PromptMean clamped(PromptMean mean, double least, double most) {
  if (mean.interval) mean.interval = {std::max(least, mean.interval->first), std::min(most, mean.interval->second)};
  return mean;
}

/// @return the mean over prompts
PromptMean mean_over_prompts(const std::vector<double>& values) {
  return mean_per_token(values, std::vector<double>(values.size(), 1));
}

std::size_t same_tokens(const TraceOutcome& outcome) {
  const auto ends = std::ranges::mismatch(outcome.trace.ids, outcome.own.ids);
  return static_cast<std::size_t>(ends.in1 - outcome.trace.ids.begin());
}

TraceSample sample_of(const TokenIds& prompt, const TraceOutcome& outcome) {
  const FullReference& full = *outcome.scored.full;
  const auto tokens = static_cast<double>(full.divergence.tokens);
  return {.prompt_tokens = prompt.size(),
          .tokens = outcome.trace.ids.size(),
          .ended = outcome.trace.ended,
          .kl = full.divergence.kl / tokens,
          .top1 = static_cast<double>(full.divergence.agreed) / tokens,
          .nll = outcome.scored.sum.mean(),
          .full_nll = full.sum.mean(),
          .same_tokens = same_tokens(outcome),
          .own_tokens = outcome.own.ids.size(),
          .own_ended = outcome.own.ended};
}

/// Returns the tokens after which at least half of the prompts have diverged.
std::optional<std::size_t> median_of(std::span<const TraceSample> samples) {
  std::vector<std::size_t> ends;
  for (const TraceSample& sample : samples)
    if (sample.diverged()) ends.push_back(sample.same_tokens);
  const std::size_t half = (samples.size() + 1) / 2;
  if (ends.size() < half) return std::nullopt;
  std::ranges::nth_element(ends, ends.begin() + static_cast<std::ptrdiff_t>(half) - 1);
  return ends[half - 1];
}

OwnContinuations own_continuations(std::span<const TraceSample> samples, std::span<const TraceOutcome> outcomes) {
  const auto same =
      static_cast<double>(std::ranges::count_if(samples, [](const TraceSample& sample) { return !sample.diverged(); }));
  const auto prompts = static_cast<double>(samples.size());
  const auto lengths = [&](auto part) {
    return ContinuationLengths{
        .tokens = mean_of(of_prompts(outcomes, [&](const TraceOutcome& one) { return (one.*part).ids.size(); })),
        .ended = mean_of(of_prompts(outcomes, [&](const TraceOutcome& one) { return (one.*part).ended ? 1 : 0; }))};
  };
  return {.same_tokens =
              clamped(mean_over_prompts(of_prompts(outcomes, same_tokens)), 0, std::numeric_limits<double>::max()),
          .median = median_of(samples),
          .undiverged = same / prompts,
          .undiverged_interval = wilson_interval(same / prompts, prompts),
          .lengths = lengths(&TraceOutcome::own),
          .full_lengths = lengths(&TraceOutcome::trace)};
}

DivergenceCurves curves_of(const QuantileSketch& kls, std::span<const TraceOutcome> outcomes, std::size_t count) {
  DivergenceCurves curves{.zeros = kls.zeros(), .histogram = divergence_histogram(kls)};
  std::size_t begin = 0;
  for (const std::size_t end : trace_parts(count)) {
    DivergenceCurves::Part part{.end = end};
    double tokens = 0;
    for (const TraceOutcome& outcome : outcomes) {
      const std::size_t length = outcome.trace.ids.size();
      if (length <= begin) continue;
      const auto own = static_cast<double>(std::min(end, length) - begin);
      const PartLoss& loss = outcome.scored.parts.front()[curves.parts.size()];
      part.kl += own * loss.kl;
      part.nll_difference += own * (loss.nll - loss.full_nll);
      tokens += own;
    }
    if (tokens == 0) break;  // every trace has ended
    part.kl /= tokens;
    part.nll_difference /= tokens;
    curves.parts.push_back(part);
    begin = end;
  }
  return curves;
}

/// The predictions for all traces' tokens.
FullReference all_predictions(std::span<const TraceOutcome> outcomes) {
  FullReference all;
  for (const TraceOutcome& outcome : outcomes) all += *outcome.scored.full;
  return all;
}

double mean_bytes_ratio(std::span<const TokenIds> prompts, std::span<const TraceOutcome> outcomes,
                        const ModelConfig& model) {
  double sum = 0;
  for (std::size_t n = 0; n < prompts.size(); ++n)
    sum += static_cast<double>(outcomes[n].scored.cache.peak.stored) /
           full_cache_bytes(model, prompts[n].size() + outcomes[n].trace.ids.size());
  return sum / static_cast<double>(prompts.size());
}

}  // namespace

PromptMean mean_per_token(std::span<const double> sums, std::span<const double> tokens) {
  const double all = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  PromptMean found{.mean = std::accumulate(sums.begin(), sums.end(), 0.0) / all};
  const std::size_t prompts = sums.size();
  if (prompts < 2) return found;
  std::vector<double> residuals(prompts);
  for (std::size_t n = 0; n < prompts; ++n)
    residuals[n] = (sums[n] - found.mean * tokens[n]) * static_cast<double>(prompts) / all;
  const double half = half_width(prompts, kConfidence) * paired_mean(residuals).error;
  found.interval = {found.mean - half, found.mean + half};
  return found;
}

TraceQuality trace_quality(std::span<const TokenIds> prompts, std::span<const TraceOutcome> outcomes,
                           const ModelConfig& model, std::size_t count) {
  const FullReference all = all_predictions(outcomes);
  const auto tokens = of_prompts(outcomes, [](const TraceOutcome& one) { return one.trace.ids.size(); });
  const auto per_token = [&](auto value) { return mean_per_token(of_prompts(outcomes, value), tokens); };
  TraceQuality quality{
      .tokens_scored = all.divergence.tokens,
      .kl = clamped(per_token([](const TraceOutcome& one) { return one.scored.full->divergence.kl; }), 0,
                    std::numeric_limits<double>::max()),
      .top1 = clamped(per_token([](const TraceOutcome& one) { return one.scored.full->divergence.agreed; }), 0, 1),
      .nll_difference =
          per_token([](const TraceOutcome& one) { return one.scored.sum.nll - one.scored.full->sum.nll; }),
      .full_nll = all.sum.mean(),
      .tail = divergence_tail(all),
      .curves = curves_of(all.divergence.kls, outcomes, count),
      .own = {},
      .bytes_ratio = mean_bytes_ratio(prompts, outcomes, model)};
  if (quality.top1.interval) quality.tail.top1_interval = *quality.top1.interval;
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    quality.samples.push_back(sample_of(prompts[n], outcomes[n]));
    quality.compressions += outcomes[n].scored.cache.compressions;
  }
  quality.own = own_continuations(quality.samples, outcomes);
  return quality;
}

TraceTimes trace_times(const TraceRun& run) {
  TraceTimes times{.trace = run.trace_seconds, .own = run.own_seconds};
  for (const TraceOutcome& outcome : run.outcomes)
    times.scored += outcome.scored.cache.seconds + outcome.scored.full->seconds;
  return times;
}

TraceFile trace_file(const TraceResult& result, std::span<const TokenIds> prompts,
                     std::span<const TraceOutcome> outcomes) {
  TraceFile file{.settings = result.settings,
                 .prompts = result.prompts,
                 .dtype = result.dtype,
                 .model = result.model,
                 .command = result.command,
                 .tool_version = result.tool_version};
  file.traces.reserve(outcomes.size());
  for (std::size_t n = 0; n < outcomes.size(); ++n)
    file.traces.push_back({prompts[n], outcomes[n].trace.ids, outcomes[n].trace.ended});
  return file;
}

}  // namespace kvs::inline eval
