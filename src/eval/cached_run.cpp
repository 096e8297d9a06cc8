#include "eval/cached_run.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"

namespace kvs {

CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use) {
  using Clock = std::chrono::steady_clock;
  const std::size_t layers = decoder.model().config().layers,
                    positions = cuts.positions != 0 ? cuts.positions : cache.positions(tokens.size());
  const Prefix& prefix = cache.prefix();
  if (prefix.tokens >= tokens.size())
    throw Error(ErrorCode::kData, "prefix",
                "found a text of " + std::to_string(tokens.size()) + " tokens, expected more than the prefix's " +
                    std::to_string(prefix.tokens));
  CacheReport report;
  if (prefix.whole) cache.begin_prefix();
  for (std::size_t first = 0; first < tokens.size();) {
    const bool in_prefix = prefix.whole && first < prefix.tokens;
    const std::size_t end = in_prefix ? prefix.tokens : tokens.size();
    const std::size_t count = std::min({cache.room(), cuts.group, end - first});
    const auto start = Clock::now();
    ResidualStream hidden = decoder.embed(tokens.subspan(first, count), first, positions);
    decoder.advance(hidden, layers, nullptr, &cache);
    if (in_prefix && first + count == end) cache.end_prefix(decoder.model().backend());
    report.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    const CacheBytes held = cache.peak();  // not what a prefix was before its compression
    if ((!in_prefix || first + count == end) && held.stored > report.peak.stored) report.peak = held;
    use(hidden, first);
    first += count;
  }
  report.end = cache.bytes();
  report.compressions = cache.compressions();
  return report;
}

}  // namespace kvs
