// SPDX-License-Identifier: Apache-2.0
#include "draw/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace kvs::draw {
namespace {

constexpr const char *kMinus = "\u2212", *kNone = "\u2013";
constexpr std::string_view kPercent = "\u00A0%";

// Takes a long double: callers multiply by 100 a value that may be the largest double.
std::string formatted(const char* format, int digits, long double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return buffer.data();
}

void with_separators(std::string& digits, std::size_t end) {
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, ",");
}

/// Removes trailing zeros after the decimal point.
void drop_zeros(std::string& text) {
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
}

std::string magnitude(long double value, int digits) {
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(value) + 1e-12));
  if (exponent < -4 || exponent > 9) {
    std::string text = formatted("%.*Le", digits - 1, value);
    const std::size_t mark = text.find('e');
    const int power = std::stoi(text.substr(mark + 1));
    return text.substr(0, mark) + "e" + (power < 0 ? kMinus : "") + std::to_string(std::abs(power));
  }
  std::string text = formatted("%.*Lf", std::max(0, digits - 1 - exponent), value);
  const std::size_t point = text.find('.');
  with_separators(text, std::min(point, text.size()));
  return text;
}

std::string shown_wide(long double value, int digits) {
  if (!std::isfinite(value)) return kNone;
  return (value < 0 ? kMinus : "") + magnitude(std::abs(value), digits);
}

/// Like shown_wide(), without trailing zeros.
std::string short_wide(long double value, int digits) {
  std::string text = shown_wide(value, digits);
  if (text.find('.') != std::string::npos && text.find('e') == std::string::npos) drop_zeros(text);
  return text;
}

}  // namespace

std::string shown(double value, int digits) { return shown_wide(value, digits); }

std::string shown_short(double value, int digits) { return short_wide(value, digits); }

std::string shown_percent(double share, int digits) {
  return std::isfinite(share) ? short_wide(100.0L * share, digits).append(kPercent) : kNone;
}

std::string shown_tenths(double share) {
  constexpr double kLongest = 1e6;
  if (!(std::abs(share) < kLongest)) return shown_percent(share);
  return (share < 0 ? kMinus : "") + formatted("%.*Lf", 1, std::abs(100.0L * share)).append(kPercent);
}

std::string shown_change(double change, int digits) {
  if (!std::isfinite(change)) return kNone;
  const long double percent = 100.0L * change;
  // Below a hundredth of a percent the digits would be noise.
  if (std::abs(percent) < 0.005) return "0" + std::string(kPercent);
  const long double size = std::abs(percent);
  const std::string text = size < 1 ? formatted("%.*Lf", digits, size) : magnitude(size, std::max(digits, 2));
  return (percent < 0 ? kMinus : "+") + text + std::string(kPercent);
}

std::string shown_range(std::pair<double, double> changes) {
  std::string low = shown_change(changes.first);
  if (low.ends_with(kPercent)) low.resize(low.size() - kPercent.size());
  return low + " to " + shown_change(changes.second);
}

std::string shown_count(std::size_t count) {
  std::string text = std::to_string(count);
  with_separators(text, text.size());
  return text;
}

std::string capitalised(std::string words) {
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

std::string counted(std::size_t count, const std::string& word) {
  return shown_count(count) + ' ' + word + (count == 1 ? "" : "s");
}

std::string coordinate(double value) {
  std::string text = formatted("%.*Lf", 2, value);
  drop_zeros(text);
  return text == "-0" ? "0" : text;
}

std::string shown_key(double value) {
  constexpr double kMost = 1e300;
  return formatted("%.*Lg", 9, std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost));
}

}  // namespace kvs::draw
