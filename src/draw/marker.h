// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "draw/colour.h"

namespace kvs::draw {

/// Colour and mark form of a series. Either of the two may repeat.
struct SeriesLook {
  Colour colour;
  std::size_t form;
  bool operator==(const SeriesLook&) const = default;
};
inline constexpr std::size_t kForms = 8;
/// Returns the look of series `n`. Looks differ for all n below kForms × kSeriesColours; below 8 both the colour and
/// the form differ.
constexpr SeriesLook series_look(std::size_t n) {
  return {series_colour(n % kSeriesColours), (n + n / kSeriesColours) % kForms};
}

/// Draws a mark around a point. All forms have about the same area. @param roles  added to "mark", for example "hollow"
Markup marker(Medium medium, std::size_t form, Colour colour, double x, double y, double size,
              std::string_view roles = "");

}  // namespace kvs::draw
