// SPDX-License-Identifier: Apache-2.0
#include "eval/cached_run.h"

#include <algorithm>

#include "core/error.h"
#include "eval/state_check.h"
#include "turns/turns.h"

namespace kvs::inline eval {

CacheReport& CacheReport::operator+=(const CacheReport& other) {
  if (other.peak.stored > peak.stored) {
    peak = other.peak;
    end = other.end;
  }
  compressions += other.compressions;
  tokens += other.tokens;
  decoded += other.decoded;
  seconds += other.seconds;
  decode_seconds += other.decode_seconds;
  compression_seconds += other.compression_seconds;
  return *this;
}

CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use) {
  const std::size_t layers = decoder.model().config().layers(),
                    positions = cuts.positions != 0 ? cuts.positions : cache.positions(tokens.size());
  const Prefix& prefix = cache.prefix();
  if (prefix.tokens > tokens.size())
    throw Error(ErrorCode::kData, "prefix",
                "found a text of " + std::to_string(tokens.size()) + " tokens, expected at least the prefix's " +
                    std::to_string(prefix.tokens));
  const std::size_t prefill = tokens.size() - std::min(cuts.decode, tokens.size() - prefix.tokens);
  CacheReport report;
  report.tokens = tokens.size();
  report.decoded = tokens.size() - prefill;
  const std::size_t started = std::min(cuts.start.tokens, prefill);
  if (prefix.whole) cache.begin_prefix();
  for (std::size_t first = 0; first < tokens.size();) {
    const bool in_prefix = prefix.whole && first < prefix.tokens, in_start = first < started;
    const std::size_t end = in_start ? started : in_prefix ? prefix.tokens : first < prefill ? prefill : tokens.size();
    const bool decodes = !in_prefix && first >= prefill;
    const std::size_t count = decodes ? 1 : std::min({cache.max_tokens_per_call(), cuts.group, end - first});
    const double start = turn_seconds();
    ResidualStream hidden;
    if (in_start) {
      decoder.replay(*cuts.start.states, first, count, positions, cache);
    } else {
      hidden = decoder.embed(tokens.subspan(first, count), first, positions);
      try {
        decoder.advance(hidden, layers, cuts.hook, &cache);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kData) check_states(decoder, tokens.first(first + count));
        throw;
      }
    }
    const bool ends_prefix = in_prefix && first + count == prefix.tokens;
    if (ends_prefix) cache.end_prefix(decoder.model().backend());
    const double seconds = turn_seconds() - start;
    report.seconds += seconds;
    if (decodes) report.decode_seconds += seconds;
    const CacheBytes held = cache.peak();  // does not count a prefix before its compression
    if ((!in_prefix || ends_prefix) && held.stored > report.peak.stored) report.peak = held;
    if (!in_start) use(hidden, first);
    first += count;
  }
  report.end = cache.bytes();
  report.compressions = cache.compressions();
  report.compression_seconds = cache.compression_seconds();
  return report;
}

}  // namespace kvs::inline eval
