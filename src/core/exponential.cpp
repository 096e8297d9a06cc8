// SPDX-License-Identifier: Apache-2.0
#include "core/exponential.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace kvs::inline core {

std::string exponential_text(double exponent, int digits) {
  const double value = std::exp(exponent);
  const bool held = std::isnormal(value);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), held ? "%.*g" : "e^%.*g", digits, held ? value : exponent);
  return text.data();
}

std::string exponential_with_error(double exponent, double error, int digits) {
  std::string text = exponential_text(exponent, digits);
  if (!(error > 0)) return text;
  std::array<char, 64> tail{};
  const double value = std::exp(exponent);
  const bool held = std::isnormal(value);
  std::snprintf(tail.data(), tail.size(), held ? " ± %.2g" : " (± %.2g in the exponent)", held ? value * error : error);
  return text + tail.data();
}

}  // namespace kvs::inline core
