// SPDX-License-Identifier: Apache-2.0
#include "draw/marker.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "draw/numbers.h"

namespace kvs::draw {
namespace {

/// A corner in units of a circle's radius.
using Corner = std::pair<double, double>;
constexpr std::array<Corner, 4> kSquare{{{-0.88, -0.88}, {0.88, -0.88}, {0.88, 0.88}, {-0.88, 0.88}}};
constexpr std::array<Corner, 4> kDiamond{{{0, -1.25}, {1.25, 0}, {0, 1.25}, {-1.25, 0}}};
constexpr std::array<Corner, 3> kUp{{{0, -1.2}, {1.17, 0.92}, {-1.17, 0.92}}};
constexpr std::array<Corner, 3> kDown{{{0, 1.2}, {1.17, -0.92}, {-1.17, -0.92}}};
constexpr std::array<Corner, 3> kLeft{{{-1.2, 0}, {0.92, -1.17}, {0.92, 1.17}}};
constexpr std::array<Corner, 3> kRight{{{1.2, 0}, {-0.92, -1.17}, {-0.92, 1.17}}};
constexpr std::array<Corner, 12> kCross{{{-0.38, -1.13},
                                         {0.38, -1.13},
                                         {0.38, -0.38},
                                         {1.13, -0.38},
                                         {1.13, 0.38},
                                         {0.38, 0.38},
                                         {0.38, 1.13},
                                         {-0.38, 1.13},
                                         {-0.38, 0.38},
                                         {-1.13, 0.38},
                                         {-1.13, -0.38},
                                         {-0.38, -0.38}}};
/// The first form is a circle.
constexpr std::array<std::span<const Corner>, kForms> kCorners{
    std::span<const Corner>(), kSquare, kDiamond, kUp, kDown, kLeft, kRight, kCross};

}  // namespace

Markup marker(Medium medium, std::size_t form, Colour colour, double x, double y, double size, std::string_view roles) {
  AttributeList attributes = paint(medium, "mark" + (roles.empty() ? "" : " " + std::string(roles)), colour);
  const std::span<const Corner> corners = kCorners[form % kForms];
  if (corners.empty()) {
    attributes.insert(attributes.end(), {{"cx", coordinate(x)}, {"cy", coordinate(y)}, {"r", coordinate(size)}});
    return shape("circle", attributes);
  }
  std::string path;
  for (const auto& [dx, dy] : corners)
    path += (path.empty() ? "M" : "L") + coordinate(x + size * dx) + " " + coordinate(y + size * dy);
  attributes.emplace_back("d", path + "z");
  return shape("path", attributes);
}

}  // namespace kvs::draw
