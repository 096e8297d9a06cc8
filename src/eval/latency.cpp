// SPDX-License-Identifier: Apache-2.0
#include "eval/latency.h"

#include <algorithm>
#include <functional>

#include "eval/cached_run.h"
#include "model/work.h"

namespace kvs::inline eval {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_ratio(const std::vector<double>& values, const std::vector<double>& reference) {
  std::vector<double> ratios(values.size());
  std::ranges::transform(values, reference, ratios.begin(), std::divides<>());
  return median(std::move(ratios));
}

CacheReport time_run(Decoder& decoder, std::span<const std::int32_t> tokens, const TimedCache& timed,
                     std::size_t decode, bool check) {
  Cache cache = timed.make();
  Backend& backend = decoder.model().backend();
  return run_cached(decoder, cache, tokens, {.decode = decode}, [&](const ResidualStream& hidden, std::size_t) {
    float first = 0;  // waits for queued operations
    backend.download(&first, hidden.rows.view().data(), sizeof first);
    const std::size_t last = hidden.tokens() - 1;
    if (check) (void)decoder.logits(hidden, std::span(&last, 1));  // throws on NaN and infinity
  });
}

}  // namespace

std::vector<std::vector<LatencyCell>> measure_latency(Decoder& decoder, std::span<const std::int32_t> tokens,
                                                      std::span<const TimedCache> caches, const LatencyPlan& plan,
                                                      const std::function<void(std::size_t)>& done) {
  std::vector<std::vector<LatencyCell>> cells;
  std::size_t runs = 0;
  for (const std::size_t length : plan.lengths) {
    auto& of_length = cells.emplace_back(caches.size());
    const std::size_t warm_up = plan.warm_up ? 1 : 0;
    double spent = 0;
    for (std::size_t repeat = 0; repeat < warm_up + plan.repeats; ++repeat) {
      if (plan.seconds && repeat > warm_up && spent + spent / static_cast<double>(repeat) > *plan.seconds) break;
      for (std::size_t n = 0; n < caches.size(); ++n) {
        const CacheReport report =
            time_run(decoder, tokens.first(length + plan.decode), caches[n], plan.decode, repeat == 0);
        done(++runs);
        spent += report.seconds;
        if (repeat < warm_up) continue;
        of_length[n].prefill.push_back((report.seconds - report.decode_seconds) / static_cast<double>(length));
        of_length[n].decode.push_back(report.decode_seconds / static_cast<double>(plan.decode));
      }
    }
  }
  return cells;
}

bool clock_went_on(const std::vector<std::vector<LatencyCell>>& cells) {
  const auto positive = [](const std::vector<double>& seconds) {
    return std::ranges::all_of(seconds, [](double value) { return value > 0; });
  };
  return std::ranges::all_of(cells, [&](const std::vector<LatencyCell>& of_length) {
    return std::ranges::all_of(
        of_length, [&](const LatencyCell& cell) { return positive(cell.prefill) && positive(cell.decode); });
  });
}

LatencyResult latency_result(const LatencyPlan& plan, std::span<const TimedCache> caches,
                             const std::vector<std::vector<LatencyCell>>& cells) {
  constexpr double kMilliseconds = 1000;
  LatencyResult result{.lengths = plan.lengths, .decode = plan.decode, .repeats = plan.repeats};
  for (std::size_t n = 0; n < caches.size(); ++n) {
    CacheLatency& cache = result.caches.emplace_back();
    cache.label = caches[n].label;
    for (const auto& of_length : cells) {
      const LatencyCell &own = of_length[n], &first = of_length.front();
      cache.prefill_ms.push_back(kMilliseconds * median(own.prefill));
      cache.decode_ms.push_back(kMilliseconds * median(own.decode));
      cache.prefill_ratio.push_back(median_ratio(own.prefill, first.prefill));
      cache.decode_ratio.push_back(median_ratio(own.decode, first.decode));
    }
  }
  return result;
}

double latency_flops(const LatencyPlan& plan, std::size_t caches, const ModelConfig& model) {
  double flops = 0;
  for (const std::size_t length : plan.lengths)
    flops += forward_flops(model, static_cast<double>(length + plan.decode));
  return static_cast<double>(caches * (plan.repeats + (plan.warm_up ? 1 : 0))) * flops;
}

}  // namespace kvs::inline eval
