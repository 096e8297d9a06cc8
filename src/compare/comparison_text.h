#pragma once

#include <cstdio>
#include <string>

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

/// " (0.9997–1.0367)", or nothing for null. @param number  a format for one double
inline std::string interval_text(const Json& interval, const char* number) {
  if (interval.is_null()) return "";
  return " (" + text_of(number, interval[0].get<double>()) + "–" + text_of(number, interval[1].get<double>()) + ")";
}

}  // namespace kvs
