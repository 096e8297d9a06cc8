#include "eval/evaluation_report.h"

#include <sstream>

#include "calibrate/paired_difference.h"

namespace kvs {

double full_cache_bytes(const ModelConfig& model, std::size_t tokens) {
  constexpr double kBytesPerValue = 2;  // sizes are stated for 16-bit caches
  return kBytesPerValue * static_cast<double>(model.cached_tokens(tokens) * 2 * model.kv_heads * model.head_dim);
}

Json evaluation_json(const Evaluation& evaluation, const ModelConfig& model, std::size_t window) {
  const auto tokens = static_cast<double>(window);
  const CacheReport& cache = evaluation.cache;
  const PerplexitySum& sum = evaluation.sum;
  Json result{{"ppl", sum.perplexity()},
              {"nll_mean", sum.mean()},
              {"tokens_scored", sum.scored},
              {"bytes_per_token", static_cast<double>(cache.peak.stored) / tokens},
              {"bytes_ratio", static_cast<double>(cache.peak.stored) / full_cache_bytes(model, window)}};
  result["bytes_per_token_end"] = static_cast<double>(cache.end.stored) / tokens;
  result["bytes_allocated"] = cache.peak.used + cache.peak.spare;
  result["bytes_spare"] = cache.peak.spare;
  result["compressions"] = cache.compressions;
  if (!evaluation.full) return result;
  const auto& [full, divergence, seconds] = *evaluation.full;
  const auto documents = static_cast<double>(full.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < full.per_document.size(); ++n)
    differences.push_back((sum.per_document[n] - full.per_document[n]) * documents / static_cast<double>(full.scored));
  const PairedDifference difference = paired_difference(differences);
  result["full"] = {{"ppl", full.perplexity()}};
  if (model.exceeds_context(window)) result["full"]["beyond_context"] = model.context;
  result["ratio"] = {{"ppl", sum.perplexity() / full.perplexity()}};
  if (difference.interval)
    result["ratio"]["interval"] = {1 + difference.interval->first, 1 + difference.interval->second};
  result["kl"] = divergence.kl / static_cast<double>(divergence.tokens);
  result["top1"] = static_cast<double>(divergence.agreed) / static_cast<double>(divergence.tokens);
  return result;
}

void add_times(const Evaluation& evaluation, Json& result) {
  const CacheReport& cache = evaluation.cache;
  // 0 where the clock stood still.
  const auto rate = [](std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  result["seconds"] = cache.seconds;
  result["tokens_per_second"] = rate(cache.tokens, cache.seconds);
  if (cache.tokens > cache.decoded)
    result["prefill_tokens_per_second"] = rate(cache.tokens - cache.decoded, cache.seconds - cache.decode_seconds);
  if (cache.decoded > 0) result["decode_tokens_per_second"] = rate(cache.decoded, cache.decode_seconds);
  result["compression_share"] = cache.seconds > 0 ? cache.compression_seconds / cache.seconds : 0;
  if (evaluation.full) result["full"]["seconds"] = evaluation.full->seconds;
}

std::string evaluation_summary(const Json& result) {
  std::ostringstream text;
  const auto real = [&](const char* name) { return result.at(name).get<double>(); };
  text << "perplexity " << real("ppl") << " over " << result.at("tokens_scored").get<std::size_t>() << " tokens, "
       << real("bytes_per_token") << " cache bytes per token (" << 100 * real("bytes_ratio")
       << " % of the full cache)\n  ";
  if (result.contains("prefill_tokens_per_second"))
    text << "prefill " << real("prefill_tokens_per_second") << " tokens/s, ";
  if (result.contains("decode_tokens_per_second"))
    text << "decode " << real("decode_tokens_per_second") << " tokens/s, ";
  text << result.at("compressions").get<std::size_t>() << " compressions, " << 100 * real("compression_share")
       << " % of the time\n";
  if (!result.contains("kl")) return text.str();
  text << "  against the full cache";
  if (const Json& full = result.at("full"); full.contains("beyond_context"))
    text << ", which is beyond the model's context of " << full.at("beyond_context").get<std::size_t>() << " tokens";
  text << ": perplexity × " << result.at("ratio").at("ppl").get<double>();
  if (const Json& ratio = result.at("ratio"); ratio.contains("interval"))
    text << " (95 % " << ratio.at("interval")[0].get<double>() << " to " << ratio.at("interval")[1].get<double>()
         << ")";
  text << ", KL divergence " << real("kl") << " nats, same first choice in " << 100 * real("top1") << " % of tokens\n";
  return text.str();
}

}  // namespace kvs
