// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace kvs::draw {

/// A picture, or the reason why there is none.
struct Png {
  std::string bytes;
  std::string problem = {};  // empty if there is a picture; else, for example, "rsvg-convert: not found (Debian: …)"
  bool hung = false;         // the program exceeded the time limit
};
inline constexpr std::chrono::seconds kPatience{60};

/// Converts an SVG to a PNG with two pixels per unit, by librsvg's rsvg-convert from PATH. All data pass through files
/// in memory, so that nothing is left behind even if this process is killed.
/// @throws Interrupted
Png png_of(std::string_view svg, std::chrono::milliseconds patience = kPatience);

/// Returns true if an SVG or PNG is complete, that is, has its end.
bool is_whole_figure(std::string_view bytes) noexcept;

}  // namespace kvs::draw
