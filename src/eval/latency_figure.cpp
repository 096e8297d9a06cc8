#include "eval/latency_figure.h"

#include "embedded/figure_latency.h"

namespace kvs {

FigureImages render_latency(const LatencyFigure& latency) {
  Figure figure(embedded::figure_latency, 760, 330 + 16 * static_cast<double>(latency.curves.size()));
  FigureData data;
  std::size_t number = 0;
  for (const LatencyFigure::Curve& curve : latency.curves) {
    figure.set("curve_title_" + std::to_string(++number), curve.title);
    for (std::size_t n = 0; n < latency.lengths.size(); ++n)
      data.row({static_cast<double>(latency.lengths[n]), curve.prefill_ms[n], curve.decode_ms[n]});
    data.next_block();
  }
  std::string tics = "\"(";
  for (const std::size_t length : latency.lengths) tics += (tics.size() > 2 ? ", " : "") + std::to_string(length);
  return figure.data("time", data)
      .set("curves", static_cast<double>(latency.curves.size()))
      .set("x_low", static_cast<double>(latency.lengths.front()) / 1.2)
      .set("x_high", static_cast<double>(latency.lengths.back()) * 1.2)
      .set_raw("length_tics", tics + ")\"")
      .set("heading", latency.heading)
      .render();
}

}  // namespace kvs
