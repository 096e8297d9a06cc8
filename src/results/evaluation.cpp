// SPDX-License-Identifier: Apache-2.0
#include "results/evaluation.h"

#include <iomanip>
#include <limits>
#include <sstream>

#include "core/exponential.h"

namespace kvs::inline results {
namespace {

/// Formats an error with two digits.
std::string error_text(double error) {
  std::ostringstream text;
  text << std::setprecision(2) << error;
  return text.str();
}

/// Formats "14.21 ± 0.35 (NLL 2.654 ± 0.025 nats)".
std::string perplexity_text(const CacheQuality& quality) {
  std::ostringstream text;
  text << exponential_with_error(quality.nll_mean, quality.nll_error, 6) << " (NLL " << quality.nll_mean << " ± "
       << error_text(quality.nll_error) << " nats)";
  return text.str();
}

/// Formats "1.0184 (95 % 0.9997 to 1.0367)".
std::string ratio_text(const PerplexityRatio& ratio) {
  std::ostringstream text;
  text << exponential_text(ratio.nll_difference, 6);
  if (!ratio.interval) return text.str() + " (one document, no interval)";
  text << " (95 % " << ratio.interval->first << " to ";
  if (ratio.interval->second < std::numeric_limits<double>::max())
    text << ratio.interval->second << ')';
  else
    text << "beyond 1e308)";
  return text.str();
}

std::string divergence_text(const CacheLoss& loss) {
  std::ostringstream text;
  text << "KL divergence " << loss.kl << " ± " << error_text(loss.kl_error) << " nats";
  if (loss.tail) text << " (" << tail_text(*loss.tail) << ')';
  return text.str();
}

/// Formats "prefill 12.3 tokens/s, decode 4.5 tokens/s, 36 compressions, 2 % of the time".
std::string work_text(const CacheQuality& quality, const std::optional<EvaluationTimes>& times) {
  std::ostringstream text;
  if (times && times->prefill_tokens_per_second)
    text << "prefill " << *times->prefill_tokens_per_second << " tokens/s, ";
  if (times && times->decode_tokens_per_second) text << "decode " << *times->decode_tokens_per_second << " tokens/s, ";
  text << quality.compressions << " compressions";
  if (times && times->compression_share) text << ", " << 100 * *times->compression_share << " % of the time";
  return text.str();
}

std::string loss_text(const CacheLoss& loss) {
  std::ostringstream text;
  text << "against the full cache";
  if (loss.full.beyond_context)
    text << ", which is beyond the model's context of " << *loss.full.beyond_context << " tokens";
  text << ": perplexity × " << ratio_text(loss.ratio) << ", " << divergence_text(loss) << ", same first choice in "
       << 100 * loss.top1 << " % of tokens";
  if (loss.tail)
    text << std::setprecision(3) << " (95 % " << 100 * loss.tail->top1_interval.first << " to "
         << 100 * loss.tail->top1_interval.second << "), |Δ log p| of the text's tokens " << loss.tail->change_mean
         << ", 95 % " << loss.tail->change_p95;
  return text.str();
}

}  // namespace

void CacheQuality::check(const CacheQuality& quality, const JsonCursor& json) {
  if (quality.bytes_ratio <= 0) json.at("bytes_ratio").fail("a number above 0");
  if (quality.ppl && *quality.ppl <= 0) json.at("ppl").fail("a number above 0");
  if (quality.loss && quality.loss->ratio.ppl && *quality.loss->ratio.ppl <= 0)
    json.at("ratio").at("ppl").fail("a number above 0");
}

std::string quality_text(const CacheQuality& quality) {
  return "perplexity " + perplexity_text(quality) + ", × " + ratio_text(quality.loss->ratio) +
         " of the full cache's, " + divergence_text(*quality.loss);
}

std::string shared_bytes_text(std::size_t bytes, std::size_t tokens) {
  std::ostringstream text;
  text << std::setprecision(3) << 1e-6 * static_cast<double>(bytes) << " MB that all sequences share, "
       << std::setprecision(4) << static_cast<double>(bytes) / static_cast<double>(tokens)
       << " B a token of one document";
  return text.str();
}

std::string to_text(const EvaluationResult& result) {
  const CacheQuality& quality = result.quality;
  std::ostringstream text;
  text << result.method << ": perplexity " << perplexity_text(quality) << " over " << quality.tokens_scored << " tokens"
       << (result.bos && *result.bos ? " behind BOS" : "") << " (standard errors over " << quality.errors_over << "), "
       << quality.bytes_per_token << " cache bytes per token (" << 100 * quality.bytes_ratio
       << " % of the full cache)\n  " << work_text(quality, result.times) << '\n';
  if (result.shared_bytes) text << "  besides, " << shared_bytes_text(*result.shared_bytes, result.window) << '\n';
  if (result.model.recurrent_bytes)
    text << "  besides, " << *result.model.recurrent_bytes << " bytes of recurrent states a sequence, however long\n";
  if (quality.loss) text << "  " << loss_text(*quality.loss) << '\n';
  for (const EngineUse& use : result.engines) text << to_text(use);
  return text.str();
}

std::string to_text(const EngineUse& use) {
  std::string text = "  runs in " + use.engine + (use.flags.empty() ? "" : ": ") + use.flags + '\n';
  for (const std::string& note : use.notes) text += "    " + note + '\n';
  return text;
}

}  // namespace kvs::inline results
