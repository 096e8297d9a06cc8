#include "export/report/markers.h"

#include <array>
#include <utility>

#include "export/report/numbers.h"

namespace kvs {
namespace {

/// Corners around the middle; equal areas as far as the eye goes.
using Corners = std::vector<std::pair<double, double>>;
const std::array<Corners, kMarkers>& forms() {
  static const std::array<Corners, kMarkers> kForms{{
      {},  // a circle
      {{-4.2, -4.2}, {4.2, -4.2}, {4.2, 4.2}, {-4.2, 4.2}},
      {{0, -6}, {6, 0}, {0, 6}, {-6, 0}},
      {{0, -5.8}, {5.6, 4.4}, {-5.6, 4.4}},
      {{0, 5.8}, {5.6, -4.4}, {-5.6, -4.4}},
      {{-5.8, 0}, {4.4, -5.6}, {4.4, 5.6}},
      {{5.8, 0}, {-4.4, -5.6}, {-4.4, 5.6}},
      {{-1.8, -5.4},
       {1.8, -5.4},
       {1.8, -1.8},
       {5.4, -1.8},
       {5.4, 1.8},
       {1.8, 1.8},
       {1.8, 5.4},
       {-1.8, 5.4},
       {-1.8, 1.8},
       {-5.4, 1.8},
       {-5.4, -1.8},
       {-1.8, -1.8}},
  }};
  return kForms;
}

}  // namespace

Markup marker(std::size_t n, bool hollow, double x, double y) {
  const std::string style = "mark s" + std::to_string(n % kMarkers) + (hollow ? " hollow" : "");
  const Corners& corners = forms()[n % kMarkers];
  if (corners.empty())
    return element("circle", {{"class", style}, {"cx", coordinate(x)}, {"cy", coordinate(y)}, {"r", "4.8"}});
  std::string path;
  for (const auto& [dx, dy] : corners)
    path += (path.empty() ? "M" : "L") + coordinate(x + dx) + " " + coordinate(y + dy);
  return element("path", {{"class", style}, {"d", path + "z"}});
}

Markup legend(const std::vector<std::string>& names) {
  Markup items;
  for (std::size_t n = 0; n < names.size(); ++n)
    items += element("li", element("svg", {{"viewBox", "0 0 16 16"}, {"aria-hidden", "true"}}, marker(n, false, 8, 8)) +
                               text(names[n]));
  return element("ul", {{"class", "legend"}}, items);
}

}  // namespace kvs
