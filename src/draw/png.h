#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace kvs::draw {

/// A picture, or why there is none.
struct Png {
  std::string bytes;
  std::string problem = {};  // empty where there is a picture: "rsvg-convert: not found (Debian: …)"
  bool hung = false;         // the program took too long
};
inline constexpr std::chrono::seconds kPatience{60};

/// An SVG as a PNG of twice as many pixels as it has units, by librsvg's rsvg-convert on PATH. Everything passes
/// through files in memory, so that nothing is left behind even when this process is killed.
/// @throws Interrupted
Png png_of(std::string_view svg, std::chrono::milliseconds patience = kPatience);

/// Whether an SVG or PNG has its end.
bool is_whole_figure(std::string_view bytes) noexcept;

}  // namespace kvs::draw
