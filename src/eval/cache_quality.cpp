#include "eval/cache_quality.h"

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
  const auto& [full, divergence, kl, seconds] = reference;
  const auto tokens = static_cast<double>(divergence.tokens);
  return {.full = {if_finite(full.perplexity()), full.mean(), full.error()},
          .ratio = ratio_of(sum, full),
          .kl = divergence.kl / tokens,
          .kl_error = standard_error(kl, divergence.tokens, divergence.squares),
          .top1 = static_cast<double>(divergence.agreed) / tokens};
}

}  // namespace

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
