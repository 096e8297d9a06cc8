// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "core/exponential.h"
#include "results/comparison.h"

namespace kvs::inline results {

/// Formats like printf; the text is truncated to 255 bytes.
template <class... Arguments>
std::string text_of(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

/// Formats a configuration's perplexity relative to the full cache: "1.0184", or "e^812.3" if it overflows a double.
inline std::string times_text(const ScoredLoss::Ratio& ratio) {
  return ratio.ppl ? text_of("%.4f", *ratio.ppl) : exponential_text(ratio.nll_difference);
}

/// Formats `value` with the printf format `number` for one double, or with "%.3g" from 1e6 on.
inline std::string number_text(const char* number, double value) {
  constexpr double kHuge = 1e6;
  return text_of(value < kHuge ? number : "%.3g", value);
}
/// Formats " (0.9997–1.0367)"; returns "" without an interval.
inline std::string interval_text(const draw::Interval& interval, const char* number) {
  if (!interval) return "";
  return " (" + number_text(number, interval->first) + "–" + number_text(number, interval->second) + ")";
}

/// Returns why a cache of this loss is not to be used: "KL divergence above 0.1 nats a token"; "" if it may be used.
inline std::string unsafe_reason(const ScoredLoss& loss) {
  std::string text;
  if (loss.kl > kUnsafeKl) text = text_of("KL divergence above %.3g nats a token", kUnsafeKl);
  if (loss.top1 < kUnsafeTop1)
    text += (text.empty() ? "" : " and ") + text_of("less than %.3g %% equal first choices", 100 * kUnsafeTop1);
  return text;
}

}  // namespace kvs::inline results
