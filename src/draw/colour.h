// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "draw/markup.h"

namespace kvs::draw {

/// A file has literal colours. A page has CSS classes, whose colours its style sheet sets for the light and dark theme.
enum class Medium { kFile, kPage };

/// A colour by its meaning. Colour-blind readers can tell the colours apart in both media.
struct Colour {
  enum class Scale {
    kInk,         ///< neutral colour without a meaning
    kSeries,      ///< one of a few; `place` is its index
    kSequential,  ///< from 0 to 1, for areas
    kDiverging,   ///< from −1 to 1, for areas; 0 is pale
    kOrder,       ///< from 0 (strongest) to 1; never as pale as the background, so also usable for lines
  };
  Scale scale = Scale::kInk;
  double place = 0;
  bool operator==(const Colour&) const = default;
};
constexpr Colour series_colour(std::size_t n) { return {Colour::Scale::kSeries, static_cast<double>(n)}; }
constexpr Colour sequential(double share) { return {Colour::Scale::kSequential, share}; }
constexpr Colour diverging(double share) { return {Colour::Scale::kDiverging, share}; }
constexpr Colour order(double share) { return {Colour::Scale::kOrder, share}; }

/// Number of distinct series colours. The form of the marks distinguishes further series (marker.h).
inline constexpr std::size_t kSeriesColours = 8;

/// Returns the number of steps in which a scale is drawn.
std::size_t levels(Colour::Scale scale, Medium medium);
/// Returns the step of a colour's position, counted from 0.
std::size_t level_of(Colour colour, Medium medium);
/// Returns the colour in the middle of a step.
Colour at_level(Colour::Scale scale, std::size_t level, Medium medium);

/// Returns the attributes of a shape or text with the given roles.
/// @param roles  role names of colour.cpp, separated by spaces
AttributeList paint(Medium medium, std::string_view roles, Colour colour = {});

/// Returns the CSS for the drawings of a page: the roles, and the colours of the light and the dark theme.
std::string page_style();

}  // namespace kvs::draw
