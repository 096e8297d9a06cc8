#include "analyzers/figures/retention.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "embedded/figure_retention.h"

namespace kvs {

FigureImages render_retention(const RetentionFigure& retention) {
  constexpr std::array kPanels{"Keys cut", "Values cut", "Both cut"};
  Figure figure(embedded::figure_retention, 860, 330);
  std::vector<std::size_t> order(retention.shares.size());  // lines go from left to right
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t n) { return retention.shares[n]; });
  FigureData data;
  double low = 1, high = 1;
  std::array<std::size_t, kPanels.size()> curves{};
  for (std::size_t panel = 0; panel < kPanels.size(); ++panel) {
    figure.set("panel_title_" + std::to_string(panel + 1), kPanels[panel]);
    for (const RetentionFigure::Curve& curve : retention.curves) {
      if (curve.panel != panel) continue;
      figure.set("curve_title_" + std::to_string(++curves[panel]), curve.title);
      for (const std::size_t n : order) {
        const auto& [ratio, least, most] = curve.points[n];
        data.row({100 * retention.shares[n], ratio, least, most});
        low = std::min(low, ratio);
        high = std::max(high, ratio);
      }
      data.next_block();
    }
  }
  const double margin = 1 + 0.1 * (high / low - 1 < 1 ? high / low - 1 : 1) + 1e-3;
  return figure.data("ratio", data)
      .set("panels", static_cast<double>(kPanels.size()))
      .set("curves", static_cast<double>(curves[0]))
      .set("y_low", low / margin)
      .set("y_high", high * margin)
      .set("heading", retention.heading)
      .render();
}

}  // namespace kvs
