#pragma once

#include <cstddef>

#include "draw/colour.h"

namespace kvs::draw {

/// How a series is told from the others: by a colour and by the form of its marks, either of which may repeat.
struct SeriesLook {
  Colour colour;
  std::size_t form;
  bool operator==(const SeriesLook&) const = default;
};
inline constexpr std::size_t kForms = 8;
/// The look of number `n` of an order. Below kForms × kSeriesColours no two are the same, and below 8 neither the
/// colour nor the form is.
constexpr SeriesLook series_look(std::size_t n) {
  return {series_colour(n % kSeriesColours), (n + n / kSeriesColours) % kForms};
}

/// A mark around a place. All forms have about the same area. @param roles  in addition to "mark", such as "hollow"
Markup marker(Medium medium, std::size_t form, Colour colour, double x, double y, double size,
              std::string_view roles = "");

}  // namespace kvs::draw
