#include "eval/evaluation_report.h"

#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>
#include <utility>

#include "core/exponential.h"
#include "eval/paired_difference.h"
#include "io/finite.h"

namespace kvs {

double full_cache_bytes(const ModelConfig& model, std::size_t tokens) {
  constexpr double kBytesPerValue = 2;  // sizes are stated for 16-bit caches
  return kBytesPerValue * static_cast<double>(model.cached_tokens(tokens) * 2 * model.kv_heads * model.head_dim);
}

namespace {

bool is_number(const Json& json, const char* name) { return json.contains(name) && json.at(name).is_number(); }

/// Of what says how sure another number is.
std::string short_text(double value) {
  std::ostringstream text;
  text << std::setprecision(2) << value;
  return text.str();
}

/// "14.21 ± 0.35 (NLL 2.654 ± 0.025 nats)".
std::string perplexity_text(const Json& result) {
  const double mean = result.at("nll_mean").get<double>(), error = result.at("nll_error").get<double>();
  std::ostringstream text;
  text << exponential_with_error(mean, error, 6) << " (NLL " << mean << " ± " << short_text(error) << " nats)";
  return text.str();
}

/// "1.0184 (95 % 0.9997 to 1.0367)".
std::string ratio_text(const Json& ratio) {
  std::ostringstream text;
  text << exponential_text(ratio.at("nll_difference").get<double>(), 6);
  if (!ratio.contains("interval")) return text.str() + " (one document, no interval)";
  const Json& interval = ratio.at("interval");
  text << " (95 % " << interval[0].get<double>() << " to ";
  if (interval[1].get<double>() < std::numeric_limits<double>::max())
    text << interval[1].get<double>() << ')';
  else
    text << "beyond 1e308)";
  return text.str();
}

std::string divergence_text(const Json& result) {
  std::ostringstream text;
  text << "KL divergence " << result.at("kl").get<double>() << " ± " << short_text(result.at("kl_error").get<double>())
       << " nats";
  return text.str();
}

}  // namespace

std::string quality_text(const Json& result) {
  return "perplexity " + perplexity_text(result) + ", × " + ratio_text(result.at("ratio")) + " of the full cache's, " +
         divergence_text(result);
}

std::string shared_bytes_text(std::size_t bytes, std::size_t tokens) {
  std::ostringstream text;
  text << std::setprecision(3) << 1e-6 * static_cast<double>(bytes) << " MB that all sequences share, "
       << std::setprecision(4) << static_cast<double>(bytes) / static_cast<double>(tokens)
       << " B a token of one document";
  return text.str();
}

Json evaluation_json(const Evaluation& evaluation, const ModelConfig& model, std::size_t window) {
  const auto tokens = static_cast<double>(window);
  const CacheReport& cache = evaluation.cache;
  const PerplexitySum& sum = evaluation.sum;
  Json result{{"ppl", finite_or_null(sum.perplexity())},
              {"nll_mean", sum.mean()},
              {"nll_error", sum.error()},
              {"errors_over", sum.per_document.size() > 1 ? "documents" : "tokens"},
              {"tokens_scored", sum.scored},
              {"bytes_per_token", static_cast<double>(cache.peak.stored) / tokens},
              {"bytes_ratio", static_cast<double>(cache.peak.stored) / full_cache_bytes(model, window)}};
  result["bytes_per_token_end"] = static_cast<double>(cache.end.stored) / tokens;
  result["bytes_allocated"] = cache.peak.used + cache.peak.spare;
  result["bytes_spare"] = cache.peak.spare;
  result["compressions"] = cache.compressions;
  if (!evaluation.full) return result;
  const auto& [full, divergence, kl, seconds] = *evaluation.full;
  const auto documents = static_cast<double>(full.per_document.size());
  std::vector<double> differences;
  for (std::size_t n = 0; n < full.per_document.size(); ++n)
    differences.push_back((sum.per_document[n] - full.per_document[n]) * documents / static_cast<double>(full.scored));
  const PairedDifference difference = paired_difference(differences);
  result["full"] = {{"ppl", finite_or_null(full.perplexity())}, {"nll_mean", full.mean()}, {"nll_error", full.error()}};
  if (model.exceeds_context(window)) result["full"]["beyond_context"] = model.context;
  result["ratio"] = {{"ppl", exponential_or_null(difference.mean)}, {"nll_difference", difference.mean}};
  if (difference.interval)
    result["ratio"]["interval"] = {1 + difference.interval->first, 1 + difference.interval->second};
  result["kl"] = divergence.kl / static_cast<double>(divergence.tokens);
  result["kl_error"] = standard_error(kl, divergence.tokens, divergence.squares);
  result["top1"] = static_cast<double>(divergence.agreed) / static_cast<double>(divergence.tokens);
  return result;
}

void add_times(const Evaluation& evaluation, Json& result) {
  const CacheReport& cache = evaluation.cache;
  // A clock may stand still.
  const auto rate = [](std::size_t tokens, double seconds) {
    return finite_or_null(static_cast<double>(tokens) / seconds);
  };
  result["seconds"] = cache.seconds;
  result["tokens_per_second"] = rate(cache.tokens, cache.seconds);
  if (cache.tokens > cache.decoded)
    result["prefill_tokens_per_second"] = rate(cache.tokens - cache.decoded, cache.seconds - cache.decode_seconds);
  if (cache.decoded > 0) result["decode_tokens_per_second"] = rate(cache.decoded, cache.decode_seconds);
  result["compression_share"] = finite_or_null(cache.compression_seconds / cache.seconds);
  if (evaluation.full) result["full"]["seconds"] = evaluation.full->seconds;
}

std::string evaluation_summary(const Json& result) {
  std::ostringstream text;
  const auto real = [&](const char* name) { return result.at(name).get<double>(); };
  text << "perplexity " << perplexity_text(result) << " over " << result.at("tokens_scored").get<std::size_t>()
       << " tokens" << (result.contains("bos") && !result.at("bos").is_null() ? " behind BOS" : "")
       << " (standard errors over " << result.at("errors_over").get<std::string>() << "), " << real("bytes_per_token")
       << " cache bytes per token (" << 100 * real("bytes_ratio") << " % of the full cache)\n  ";
  for (const auto& [phase, name] :
       {std::pair("prefill ", "prefill_tokens_per_second"), std::pair("decode ", "decode_tokens_per_second")})
    if (is_number(result, name)) text << phase << real(name) << " tokens/s, ";
  text << result.at("compressions").get<std::size_t>() << " compressions";
  if (is_number(result, "compression_share")) text << ", " << 100 * real("compression_share") << " % of the time";
  text << '\n';
  if (result.contains("shared_bytes"))
    text << "  besides, " << shared_bytes_text(result.at("shared_bytes"), result.at("window")) << '\n';
  if (!result.contains("kl")) return text.str();
  text << "  against the full cache";
  if (const Json& full = result.at("full"); full.contains("beyond_context"))
    text << ", which is beyond the model's context of " << full.at("beyond_context").get<std::size_t>() << " tokens";
  text << ": perplexity × " << ratio_text(result.at("ratio")) << ", " << divergence_text(result)
       << ", same first choice in " << 100 * real("top1") << " % of tokens\n";
  return text.str();
}

}  // namespace kvs
