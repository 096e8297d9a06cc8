#include "eval/cached_run.h"

#include <algorithm>
#include <chrono>

namespace kvs {

CacheReport run_cached(Decoder& decoder, Cache& cache, std::span<const std::int32_t> tokens, const RunCuts& cuts,
                       const std::function<void(const ResidualStream&, std::size_t)>& use) {
  using Clock = std::chrono::steady_clock;
  const std::size_t layers = decoder.model().config().layers,
                    positions = cuts.positions != 0 ? cuts.positions : cache.positions(tokens.size());
  CacheReport report;
  for (std::size_t first = 0; first < tokens.size();) {
    const std::size_t count = std::min({cache.room(), cuts.group, tokens.size() - first});
    const auto start = Clock::now();
    ResidualStream hidden = decoder.embed(tokens.subspan(first, count), first, positions);
    decoder.advance(hidden, layers, nullptr, &cache);
    report.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    const CacheBytes held = cache.peak();
    if (held.stored > report.peak.stored) report.peak = held;
    use(hidden, first);
    first += count;
  }
  report.end = cache.bytes();
  report.compressions = cache.compressions();
  return report;
}

}  // namespace kvs
