// SPDX-License-Identifier: Apache-2.0
#include "eval/cache_quality.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "eval/paired_difference.h"
#include "io/finite.h"

namespace kvs::inline eval {
namespace {

PerplexityRatio ratio_of(const PerplexitySum& sum, const PerplexitySum& full) {
  const auto documents = static_cast<double>(full.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < full.per_document.size(); ++n)
    differences.push_back((sum.per_document[n] - full.per_document[n]) * documents / static_cast<double>(full.scored));
  const PairedDifference difference = paired_difference(differences);
  PerplexityRatio ratio{if_normal_exponential(difference.mean), difference.mean};
  if (difference.interval) ratio.interval = {1 + difference.interval->first, 1 + difference.interval->second};
  return ratio;
}

CacheLoss loss_of(const PerplexitySum& sum, const FullReference& reference) {
  const PerplexitySum& full = reference.sum;
  const Divergence& divergence = reference.divergence;
  const auto tokens = static_cast<double>(divergence.tokens);
  return {.full = {if_finite(full.perplexity()), full.mean(), full.error()},
          .ratio = ratio_of(sum, full),
          .kl = divergence.kl / tokens,
          .kl_error = standard_error(reference.kl_per_document, divergence.tokens, divergence.squares),
          .top1 = static_cast<double>(divergence.agreed) / tokens,
          .tail = divergence_tail(reference)};
}

/// Returns the 95 % interval of the share of equal first choices: Student's t over documents of equal length, and at
/// least Wilson's interval over tokens, because a few documents may have equal shares by chance.
std::pair<double, double> top1_interval(const FullReference& full) {
  const auto tokens = static_cast<double>(full.divergence.tokens);
  const auto documents = full.agreed_per_document.size();
  const auto [low, high] = wilson_interval(static_cast<double>(full.divergence.agreed) / tokens, tokens);
  if (documents < 2) return {low, high};
  std::vector<double> shares;
  for (const double agreed : full.agreed_per_document)
    shares.push_back(agreed * static_cast<double>(documents) / tokens);
  const PairedMean mean = paired_mean(shares);
  const double half = half_width(documents, 0.95) * mean.error;
  return {std::max(0.0, std::min(low, mean.mean - half)), std::min(1.0, std::max(high, mean.mean + half))};
}

/// @param scored  tokens of each document
DivergenceCurves divergence_curves(const Evaluation& evaluation, std::size_t window, std::size_t scored) {
  const QuantileSketch& kls = evaluation.full->divergence.kls;
  DivergenceCurves curves{.zeros = kls.zeros(), .histogram = divergence_histogram(kls), .first = window - scored};
  const std::size_t parts = evaluation.parts.front().size();
  for (std::size_t n = 0; n < parts; ++n) {
    DivergenceCurves::Part part{.end = curves.first + (n + 1) * scored / parts};
    for (const std::vector<PartLoss>& document : evaluation.parts) {
      part.kl += document[n].kl / static_cast<double>(evaluation.parts.size());
      part.nll_difference += (document[n].nll - document[n].full_nll) / static_cast<double>(evaluation.parts.size());
    }
    curves.parts.push_back(part);
  }
  return curves;
}

}  // namespace

std::pair<double, double> wilson_interval(double share, double count) {
  constexpr double kZ = 1.959963984540054;
  const double weight = kZ * kZ / count, centre = (share + weight / 2) / (1 + weight),
               half = kZ / (1 + weight) * std::sqrt((share * (1 - share) + weight / 4) / count);
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

std::vector<DivergenceCurves::Bin> divergence_histogram(const QuantileSketch& divergences) {
  std::vector<DivergenceCurves::Bin> histogram;
  std::ptrdiff_t bin = divergences.first_bin();
  for (const std::size_t tokens : divergences.counts()) {
    const auto wide =
        static_cast<std::int64_t>(std::ceil(kBinsPerDecade * std::log10(QuantileSketch::edge(bin++))) - 1);
    if (tokens == 0) continue;
    if (histogram.empty() || histogram.back().bin != wide) histogram.push_back({.bin = wide});
    histogram.back().tokens += tokens;
  }
  return histogram;
}

DivergenceTail divergence_tail(const FullReference& full) {
  const Divergence& found = full.divergence;
  const LargestDivergence& largest = found.largest;
  // The sketch rounds: without the bound, a quantile could exceed the largest value.
  const auto quantile = [&](double share) { return std::min(found.kls.quantile(share), std::max(largest.kl, 0.0)); };
  return {.median = quantile(0.5),
          .p99 = quantile(0.99),
          .p999 = quantile(0.999),
          .largest = {largest.kl, largest.document, largest.position, largest.token},
          .change_mean = found.changes / static_cast<double>(found.tokens),
          .change_p95 = found.change.quantile(0.95),
          .relative_error = QuantileSketch::kRelativeError,
          .top1_interval = top1_interval(full)};
}

double full_cache_bytes(const ModelConfig& model, std::size_t tokens) {
  constexpr double kBytesPerValue = 2;  // sizes are stated for 16-bit caches
  return kBytesPerValue * static_cast<double>(model.cache_values(tokens));
}

CacheQuality cache_quality(const Evaluation& evaluation, const ModelConfig& model, std::size_t window) {
  const auto tokens = static_cast<double>(window);
  const CacheReport& cache = evaluation.cache;
  const PerplexitySum& sum = evaluation.sum;
  CacheQuality quality{.ppl = if_finite(sum.perplexity()),
                       .nll_mean = sum.mean(),
                       .nll_error = sum.error(),
                       .errors_over = sum.per_document.size() > 1 ? "documents" : "tokens",
                       .tokens_scored = sum.scored,
                       .bytes_per_token = static_cast<double>(cache.peak.stored) / tokens,
                       .bytes_ratio = static_cast<double>(cache.peak.stored) / full_cache_bytes(model, window),
                       .bytes_per_token_end = static_cast<double>(cache.end.stored) / tokens,
                       .bytes_allocated = cache.peak.used + cache.peak.spare,
                       .bytes_spare = cache.peak.spare,
                       .compressions = cache.compressions};
  if (!evaluation.full) return quality;
  quality.loss = loss_of(sum, *evaluation.full);
  if (!evaluation.parts.empty())
    quality.loss->curves = divergence_curves(evaluation, window, sum.scored / evaluation.full->kl_per_document.size());
  if (model.exceeds_context(window)) quality.loss->full.beyond_context = model.context;
  return quality;
}

void add_times(const Evaluation& evaluation, EvaluationResult& result) {
  const CacheReport& cache = evaluation.cache;
  const auto rate = [](std::size_t tokens, double seconds) { return if_finite(static_cast<double>(tokens) / seconds); };
  EvaluationTimes& times = result.times.emplace();
  times = {.seconds = cache.seconds,
           .tokens_per_second = rate(cache.tokens, cache.seconds),
           .compression_share = if_finite(cache.compression_seconds / cache.seconds)};
  if (cache.tokens > cache.decoded)
    times.prefill_tokens_per_second = rate(cache.tokens - cache.decoded, cache.seconds - cache.decode_seconds);
  if (cache.decoded > 0) times.decode_tokens_per_second = rate(cache.decoded, cache.decode_seconds);
  if (result.quality.loss) result.quality.loss->full.seconds = evaluation.full->seconds;
}

}  // namespace kvs::inline eval
