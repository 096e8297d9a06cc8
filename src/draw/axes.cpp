#include "draw/axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace kvs {

std::string index_tics(std::span<const std::size_t> values, std::size_t most) {
  std::size_t step = 1;
  for (const std::size_t candidate : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U}) {
    step = candidate;
    if ((values.size() + step - 1) / step <= most) break;
  }
  std::string text = "\"(";
  for (std::size_t i = 0; i < values.size(); i += step) {
    if (i != 0) text += ", ";
    text += "'" + std::to_string(values[i]) + "' " + std::to_string(i);
  }
  return text + ")\"";
}

double drawn_exponential(double exponent) {
  constexpr double kMost = 338;
  return std::exp(std::clamp(exponent, -kMost, kMost));
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace kvs
