// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "results/latency.h"

namespace kvs::inline eval {

/// The configurations to time.
struct LatencyPlan {
  std::vector<std::size_t> lengths;  // tokens of the prefill, ascending
  std::size_t decode = 0;            // tokens after it, one at a time
  std::size_t repeats = 0;           // of each configuration
  bool warm_up = true;               // one untimed run first
  std::optional<double> seconds{};   // time limit: no repeat but the first starts if it would end later
};

/// A cache with its name in outputs. make() creates a fresh one.
struct TimedCache {
  std::string label;
  std::function<Cache()> make;
};

/// Seconds per token of one cache at one length, by repeat.
struct LatencyCell {
  std::vector<double> prefill, decode;
};

/// Times every cache at every length. The caches take turns within each repeat, so that a machine that slows down
/// affects all of them; ratios are taken within a repeat.
/// @param tokens  of one text, at least the longest length and `decode` more
/// @param done    called after each run with the number of runs done
/// @return [length][cache]
std::vector<std::vector<LatencyCell>> measure_latency(Decoder& decoder, std::span<const std::int32_t> tokens,
                                                      std::span<const TimedCache> caches, const LatencyPlan& plan,
                                                      const std::function<void(std::size_t)>& done);

/// Returns true if every run took time: a stopped clock gives infinite speeds.
bool clock_went_on(const std::vector<std::vector<LatencyCell>>& cells);

/// Medians over repeats by length; ratios are medians of a repeat's ratio to the first cache.
LatencyResult latency_result(const LatencyPlan& plan, std::span<const TimedCache> caches,
                             const std::vector<std::vector<LatencyCell>>& cells);
/// Returns the FLOPs of measure_latency() with a number of caches.
double latency_flops(const LatencyPlan& plan, std::size_t caches, const ModelConfig& model);

}  // namespace kvs::inline eval
