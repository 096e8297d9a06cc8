#include "export/report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kCurvesWidth = 400, kCurvesHeight = 300, kCurvesBottom = 78;  // beneath: the axis and the key
constexpr double kMostDecades = 12;  // no more are drawn: what is left is rounding

Axis power_axis(const Curves& curves) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const auto& curve : curves.y)
    for (const double value : curve) {
      if (value > 0) least = std::min(least, value);
      most = std::max(most, value);
    }
  if (most <= 0) return {0.1, 1, Axis::Scale::kLogarithmic};
  const double high = std::ceil(std::log10(most));
  const double low = std::max(std::floor(std::log10(least)), high - kMostDecades);
  return {std::pow(10, std::min(low, high - 1)), std::pow(10, high), Axis::Scale::kLogarithmic};
}

std::string path_of(const Frame& frame, const std::vector<double>& x, const std::vector<double>& y) {
  std::string path;
  bool pen_down = false;
  for (std::size_t n = 0; n < x.size(); ++n) {
    if (y[n] > 0) path += (pen_down ? "L" : "M") + coordinate(frame.x(x[n])) + " " + coordinate(frame.y(y[n]));
    pen_down = y[n] > 0;
  }
  return path;
}

/// Curves keep clear of the palest colours, which are made for areas.
std::string curve_class(std::size_t n, std::size_t curves) {
  constexpr double kPalest = 0.3;
  const double place = curves > 1 ? static_cast<double>(n) / static_cast<double>(curves - 1) : 1;
  return sequential_class(kPalest + (1 - kPalest) * place);
}

ColourKey key_of(const Curves& curves) {
  ColourKey key;
  const std::size_t swatches = curves.y.size() > 1 ? 9 : curves.y.size();  // enough to look continuous
  for (std::size_t n = 0; n < swatches; ++n) key.emplace_back(curve_class(n, swatches), "");
  if (swatches > 0) key.front().second = curves.names.front();
  if (swatches > 1) key.back().second = curves.names.back();
  return key;
}

}  // namespace

Markup draw_curves(const Curves& curves) {
  const double last = curves.x.empty() ? 10 : curves.x.back();
  const Frame frame(kCurvesWidth, kCurvesHeight,
                    Axis(curves.x.empty() ? 1 : curves.x.front(), last, Axis::Scale::kLogarithmic), power_axis(curves),
                    {.bottom = kCurvesBottom});
  Markup content = frame.axes({.title = curves.words.title, .x = curves.x_name, .y = curves.y_name}, 5, 6);
  for (std::size_t n = 0; n < curves.y.size(); ++n)
    content += element(
        "path", {{"class", "curve " + curve_class(n, curves.y.size())}, {"d", path_of(frame, curves.x, curves.y[n])}},
        element("title", curves.names[n]));
  return drawing(curves.words, kCurvesWidth, kCurvesHeight,
                 content + colour_key(key_of(curves), frame.left(), kCurvesHeight - 26));
}

}  // namespace kvs
