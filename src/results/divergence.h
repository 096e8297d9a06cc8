// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "io/json_fields.h"

namespace kvs::inline results {

/// Caches that change more than this are not to be used: nats a token, and the share of equal first choices.
inline constexpr double kUnsafeKl = 0.1, kUnsafeTop1 = 0.9;

/// The distribution over tokens of the KL divergence from the full cache's predictions. Means hide rare tokens whose
/// predictions change much.
struct DivergenceTail {
  /// The token of the text whose prediction diverges most.
  struct Largest {
    double kl = 0;
    std::size_t document = 0, position = 0;  // from 0, in the order of the evaluated documents
    std::int32_t token = 0;

    static void fields(auto& largest, auto&& field) {
      field("kl", largest.kl)("document", largest.document)("position", largest.position)("token", largest.token);
    }
  };
  double median = 0, p99 = 0, p999 = 0;  // nats
  Largest largest = {};
  /// |Δ log p| of the text's tokens, nats.
  double change_mean = 0, change_p95 = 0;
  /// Quantiles are within this share of the exact values. The other numbers are exact.
  double relative_error = 0;
  /// 95 % interval of the share of equal first choices: over documents; for one document, over tokens.
  std::pair<double, double> top1_interval = {0, 1};

  static void fields(auto& tail, auto&& field) {
    field("median", tail.median)("p99", tail.p99)("p999", tail.p999)("largest", tail.largest)(
        "change_mean", tail.change_mean)("change_p95", tail.change_p95)("relative_error", tail.relative_error)(
        "top1_interval", tail.top1_interval);
  }
  static void check(const DivergenceTail& tail, const JsonCursor& json);
};

/// Number of bins of a decade in DivergenceCurves::histogram.
inline constexpr int kBinsPerDecade = 4;

/// KL divergence by its size and by position.
struct DivergenceCurves {
  /// Tokens whose divergence is in (10^(bin / 4), 10^((bin + 1) / 4)] nats.
  struct Bin {
    std::int64_t bin = 0;
    std::size_t tokens = 0;
    static void fields(auto& one, auto&& field) { field("bin", one.bin)("tokens", one.tokens); }
  };
  /// Means over the text's tokens from the end of the part before to `end`, over all documents.
  struct Part {
    std::size_t end = 0;
    double kl = 0, nll_difference = 0;
    static void fields(auto& part, auto&& field) {
      field("end", part.end)("kl", part.kl)("nll_difference", part.nll_difference);
    }
  };
  std::size_t zeros = 0;  // tokens whose divergence is below 1e-9 nats
  std::vector<Bin> histogram = {};
  std::size_t first = 0;  // position of the first text's token
  std::vector<Part> parts = {};

  static void fields(auto& curves, auto&& field) {
    field("zeros", curves.zeros)("histogram", curves.histogram)("first", curves.first)("parts", curves.parts);
  }
  static void check(const DivergenceCurves& curves, const JsonCursor& json);
};

/// Returns "median 0.0012, 99 % 0.21, 99.9 % 1.3, largest 2.7 at token 731 of document 2".
std::string tail_text(const DivergenceTail& tail);
/// Draws the histogram and the divergence by position. `curves` must have tokens.
draw::Chart divergence_chart(const std::string& heading, const DivergenceCurves& curves);

}  // namespace kvs::inline results
