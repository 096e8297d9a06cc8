#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace kvs {
namespace {

double sum_of(std::span<const float> nll) { return std::accumulate(nll.begin(), nll.end(), 0.0); }

/// The successor of each of `count` tokens from `first` on; -1 after the document's last and within the prefix.
std::vector<std::int32_t> successors(std::span<const std::int32_t> tokens, std::size_t first, std::size_t count,
                                     std::size_t prefix) {
  std::vector<std::int32_t> targets(count, -1);
  for (std::size_t t = first < prefix ? prefix - first : 0; t < count && first + t + 1 < tokens.size(); ++t)
    targets[t] = tokens[first + t + 1];
  return targets;
}

}  // namespace

Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                    const std::function<Cache()>& make, bool compare, const std::function<void(std::size_t)>& done) {
  using Clock = std::chrono::steady_clock;
  Evaluation result;
  if (compare) result.full.emplace();
  for (const auto& tokens : documents) {
    Cache cache = make();
    const std::size_t prefix = cache.prefix().tokens, scored = tokens.size() - 1 - std::min(prefix, tokens.size() - 1);
    ResidualStream reference;
    if (compare) {
      const auto start = Clock::now();
      reference = decoder.embed(tokens);
      decoder.advance(reference, decoder.model().config().layers);
      result.full->seconds += std::chrono::duration<double>(Clock::now() - start).count();
      result.full->sum.add(sum_of(decoder.nll(reference, successors(tokens, 0, tokens.size(), prefix))), scored);
    }
    double nll = 0;
    const CacheReport report =
        run_cached(decoder, cache, tokens, {}, [&](const ResidualStream& group, std::size_t first) {
          nll += sum_of(decoder.nll(group, successors(tokens, first, group.tokens(), prefix)));
          if (!compare) return;
          const std::size_t from = std::max(first, prefix), to = std::min(first + group.tokens(), tokens.size() - 1);
          if (from < to) result.full->divergence += divergence(decoder, reference, group, {first, from, to});
        });
    result.sum.add(nll, scored);
    result.tokens += tokens.size();
    if (report.peak.stored > result.cache.peak.stored) {
      result.cache.peak = report.peak;
      result.cache.end = report.end;
    }
    result.cache.compressions += report.compressions;
    result.cache.seconds += report.seconds;
    if (done) done(result.sum.per_document.size());
  }
  return result;
}

}  // namespace kvs
