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

}  // namespace kvs::inline results
