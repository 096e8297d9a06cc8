#include "export/figures/pareto.h"

#include <algorithm>
#include <cmath>

#include "embedded/figure_pareto.h"
#include "export/figures/axes.h"

namespace kvs {
namespace {

constexpr double kLeastKl = 1e-5;  // what is lower is drawn there

std::vector<std::string> methods_of(const ParetoPlot& plot) {
  std::vector<std::string> methods;
  for (const ParetoPlot::Point& point : plot.points)
    if (std::ranges::find(methods, point.method) == methods.end()) methods.push_back(point.method);
  return methods;
}

}  // namespace

FigureImages render_pareto(const ParetoPlot& plot) {
  Figure figure(embedded::figure_pareto, 820, 470);
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
  std::vector<const ParetoPlot::Point*> front;
  for (const ParetoPlot::Point& point : plot.points)
    if (point.front) front.push_back(&point);
  std::ranges::stable_sort(front, std::greater(), &ParetoPlot::Point::bytes);
  FigureData line;
  double before = 0;
  std::size_t labels = 0;
  for (const ParetoPlot::Point* point : front) {
    line.row({100 * point->bytes, std::max(point->kl, kLeastKl)});
    if (before != 0 && std::log(before / point->bytes) < 0.09) continue;  // its label would lie on the one before
    before = point->bytes;
    const std::string number = std::to_string(++labels);
    figure.set("front_label_" + number, point->label);
    figure.set("front_x_" + number, 100 * point->bytes).set("front_y_" + number, std::max(point->kl, kLeastKl));
  }
  return figure.data("cells", data)
      .data("front", line)
      .set("methods", static_cast<double>(methods.size()))
      .set("labels", static_cast<double>(labels))
      .set("heading", plot.heading)
      .set("x_low", 100 * left / 1.7)
      .set("y_low", low / 2)
      .set("y_high", high * 1.5)
      .render();
}

}  // namespace kvs
