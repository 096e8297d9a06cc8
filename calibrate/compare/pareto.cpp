#include "calibrate/compare/pareto.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "draw/axes.h"
#include "embedded/figure_pareto.h"

namespace kvs {
namespace {

constexpr double kLeastKl = 1e-5;  // what is lower is drawn there
constexpr double kPageWidth = 820, kPageHeight = 470;
// Margins of figures/pareto.gp, and about what a letter of a name takes.
constexpr double kLeft = 74, kRight = 150, kTop = 40, kBottom = 50, kLetterWidth = 6, kLetterHeight = 13;

std::vector<std::string> methods_of(const ParetoPlot& plot) {
  std::vector<std::string> methods;
  for (const ParetoPlot::Point& point : plot.points)
    if (std::ranges::find(methods, point.method) == methods.end()) methods.push_back(point.method);
  return methods;
}

/// Where points lie on the page, and which of it is taken.
class PlotArea {
 public:
  PlotArea(double x_low, double y_low, double y_high) : x_low_(x_low), y_low_(y_low), y_high_(y_high) {}

  void take(const ParetoPlot::Point& point) {
    constexpr double kMark = 4;
    const auto [x, y] = place(point);
    taken_.push_back({x - kMark, y - kMark, x + kMark, y + kMark});
  }
  /// The side of a point, below to the left (−1) or above to the right (1), at which its name meets nothing; 0: none.
  int name_side(const ParetoPlot::Point& point) {
    const auto [x, y] = place(point);
    const double width = kLetterWidth * static_cast<double>(point.label.size());
    for (const int side : {-1, 1}) {
      const double left = side < 0 ? x - 5 - width : x + 5, top = side < 0 ? y + 3 : y - 3 - kLetterHeight;
      const Box box{left, top, left + width, top + kLetterHeight};
      if (left < kLeft || left + width > kPageWidth - kRight || box.bottom > kPageHeight - kBottom) continue;
      if (std::ranges::any_of(taken_, [&](const Box& other) { return box.meets(other); })) continue;
      taken_.push_back(box);
      return side;
    }
    return 0;
  }

 private:
  struct Box {
    double left, top, right, bottom;
    bool meets(const Box& other) const {
      return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
  };
  std::pair<double, double> place(const ParetoPlot::Point& point) const {
    const double x = std::log(100 * point.bytes / x_low_) / std::log(100 / x_low_),
                 y = std::log(std::max(point.kl, kLeastKl) / y_low_) / std::log(y_high_ / y_low_);
    return {kLeft + x * (kPageWidth - kLeft - kRight), kPageHeight - kBottom - y * (kPageHeight - kTop - kBottom)};
  }

  double x_low_, y_low_, y_high_;
  std::vector<Box> taken_;
};

/// The front as a line, with the names that fit.
void add_front(Figure& figure, const ParetoPlot& plot, PlotArea area) {
  std::vector<const ParetoPlot::Point*> front;
  for (const ParetoPlot::Point& point : plot.points) {
    area.take(point);
    if (point.front) front.push_back(&point);
  }
  std::ranges::stable_sort(front, std::greater(), &ParetoPlot::Point::bytes);
  FigureData line;
  std::size_t labels = 0;
  for (const ParetoPlot::Point* point : front) {
    const double x = 100 * point->bytes, y = std::max(point->kl, kLeastKl);
    line.row({x, y});
    const int side = area.name_side(*point);
    if (side == 0) continue;
    const std::string number = std::to_string(++labels);
    figure.set("front_label_" + number, point->label).set("front_side_" + number, side);
    figure.set("front_x_" + number, x).set("front_y_" + number, y);
  }
  figure.data("front", line).set("labels", static_cast<double>(labels));
}

}  // namespace

FigureImages render_pareto(const ParetoPlot& plot) {
  Figure figure(embedded::figure_pareto, kPageWidth, kPageHeight);
  const std::vector<std::string> methods = methods_of(plot);
  FigureData data;
  double low = 1, high = kLeastKl, left = 1;
  for (std::size_t n = 0; n < methods.size(); ++n) {
    for (const auto& [label, method, bytes, kl, front] : plot.points) {
      if (method != methods[n]) continue;
      const double y = std::max(kl, kLeastKl);
      data.row({100 * bytes, y});
      low = std::min(low, y);
      high = std::max(high, y);
      left = std::min(left, bytes);
    }
    data.next_block();
    figure.set("method_" + std::to_string(n + 1), methods[n] == "full" ? "quantised alone" : methods[n]);
  }
  const double x_low = 100 * left / 1.7, y_low = low / 2, y_high = high * 1.5;
  add_front(figure, plot, {x_low, y_low, y_high});
  return figure.data("cells", data)
      .set("methods", static_cast<double>(methods.size()))
      .set("heading", plot.heading)
      .set("x_low", x_low)
      .set("y_low", y_low)
      .set("y_high", y_high)
      .render();
}

}  // namespace kvs
