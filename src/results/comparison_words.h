#pragma once

#include <cstdio>
#include <string>

#include "core/exponential.h"
#include "results/comparison.h"

namespace kvs {

/// As printf.
template <class... Arguments>
std::string text_of(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

/// "1.0184", a cell's perplexity relative to the full cache's, or "e^812.3" where no double holds it.
inline std::string times_text(const ScoredLoss::Ratio& ratio) {
  return ratio.ppl ? text_of("%.4f", *ratio.ppl) : exponential_text(ratio.nll_difference);
}

/// `value` as `number` says, a format for one double, or briefly where it is huge.
inline std::string number_text(const char* number, double value) {
  constexpr double kHuge = 1e6;
  return text_of(value < kHuge ? number : "%.3g", value);
}
/// " (0.9997–1.0367)", or nothing.
inline std::string interval_text(const draw::Interval& interval, const char* number) {
  if (!interval) return "";
  return " (" + number_text(number, interval->first) + "–" + number_text(number, interval->second) + ")";
}

}  // namespace kvs
