#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "draw/markup.h"

namespace kvs::draw {

/// A file has literal colours. A page has classes, and its style gives them colours for the light and the dark theme.
enum class Medium { kFile, kPage };

/// A colour by its meaning. In both media the colours are told apart by colour-blind readers.
struct Colour {
  enum class Scale {
    kInk,         ///< of no meaning
    kSeries,      ///< one of a few; `place` is its number
    kSequential,  ///< between 0 and 1, for areas
    kDiverging,   ///< between −1 and 1, for areas; 0 is pale
    kOrder,       ///< between 0, the strongest, and 1; none as pale as the ground, so for lines, too
  };
  Scale scale = Scale::kInk;
  double place = 0;
  bool operator==(const Colour&) const = default;
};
constexpr Colour series_colour(std::size_t n) { return {Colour::Scale::kSeries, static_cast<double>(n)}; }
constexpr Colour sequential(double share) { return {Colour::Scale::kSequential, share}; }
constexpr Colour diverging(double share) { return {Colour::Scale::kDiverging, share}; }
constexpr Colour order(double share) { return {Colour::Scale::kOrder, share}; }

/// So many colours of series differ; a mark's form tells more of them apart (marker.h).
inline constexpr std::size_t kSeriesColours = 8;

/// How many steps a scale is drawn in.
std::size_t levels(Colour::Scale scale, Medium medium);
/// The step of a place, from 0.
std::size_t level_of(Colour colour, Medium medium);
/// The colour in the middle of a step.
Colour at_level(Colour::Scale scale, std::size_t level, Medium medium);

/// The attributes that roles give a shape or a text. @param roles  names of colour.cpp, separated by blanks
AttributeList paint(Medium medium, std::string_view roles, Colour colour = {});

/// CSS for the drawings of a page: the roles, and the colours of the light and the dark theme.
std::string page_style();

}  // namespace kvs::draw
