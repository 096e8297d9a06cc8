#pragma once

#include <cstdio>
#include <string>

#include "core/exponential.h"
#include "io/json.h"

namespace kvs {

/// The error of cells that no time was left to score.
inline constexpr const char* kNoTimeToScore = "no time was left";

/// As printf.
template <class... Arguments>
std::string text_of(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

/// "1.0184", what a cell's perplexity is relative to the full cache's, or "e^812.3" where no double holds it.
inline std::string times_text(const Json& ratio) {
  if (ratio.at("ppl").is_null()) return exponential_text(ratio.at("nll_difference").get<double>());
  return text_of("%.4f", ratio.at("ppl").get<double>());
}

/// `value` as `number` says, a format for one double, or briefly where it is huge.
inline std::string number_text(const char* number, double value) {
  constexpr double kHuge = 1e6;
  return text_of(value < kHuge ? number : "%.3g", value);
}
/// " (0.9997–1.0367)", or nothing for null.
inline std::string interval_text(const Json& interval, const char* number) {
  if (interval.is_null()) return "";
  return " (" + number_text(number, interval[0].get<double>()) + "–" + number_text(number, interval[1].get<double>()) +
         ")";
}

}  // namespace kvs
