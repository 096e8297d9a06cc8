// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"

namespace kvs::inline results {

/// Time per token with one cache, by the number of preceding tokens. Ratios are relative to the full cache.
struct CacheLatency {
  std::string label;
  std::vector<double> prefill_ms, decode_ms, prefill_ratio, decode_ratio;  // [length]

  static void fields(auto& cache, auto&& field) {
    field("label", cache.label)("prefill_ms", cache.prefill_ms)("decode_ms", cache.decode_ms)(
        "prefill_ratio", cache.prefill_ratio)("decode_ratio", cache.decode_ratio);
  }
};

/// The result of `kvcalibrate latency`. The first cache is the full cache.
struct LatencyResult {
  ResultHead head = {};
  InputDigests inputs = {};
  std::string device = {}, dtype = {};
  std::vector<std::size_t> lengths;  // tokens of the prefill, ascending
  std::size_t decode = 0, repeats = 0;
  std::vector<CacheLatency> caches = {};

  static void fields(auto& result, auto&& field) {
    field.inlined(result.head);
    field.inlined(result.inputs);
    field("device", result.device)("dtype", result.dtype)("lengths", result.lengths)("decode", result.decode)(
        "repeats", result.repeats)("caches", result.caches);
  }
  static void check(const LatencyResult& result, const JsonCursor& json);
  /// Returns the heading of the figure.
  std::string heading() const;
};

/// Returns one table for the prefill and one for decoding.
std::string to_text(const LatencyResult& result);
/// Draws one panel for the prefill and one for decoding.
draw::Chart latency_chart(const std::string& heading, const LatencyResult& result);

}  // namespace kvs::inline results
