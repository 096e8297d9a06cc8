// SPDX-License-Identifier: Apache-2.0
#include "core/human.h"

#include <array>
#include <cstdio>

namespace kvs::inline core {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

}  // namespace

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return formatted(bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  constexpr double kMost = 2e9;  // of more there is no int
  if (!(seconds < kMost)) seconds = kMost;
  if (seconds < 10) return formatted("%.1f s", seconds);
  if (seconds < 60) return formatted("%.0f s", seconds);
  if (seconds < 3600) return formatted("%d min %d s", static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60);
  return formatted("%d h %d min", static_cast<int>(seconds) / 3600, static_cast<int>(seconds) / 60 % 60);
}

}  // namespace kvs::inline core
