#include "analyzers/figures/spectrum_heads.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "analyzers/figures/bands.h"
#include "embedded/figure_spectrum_heads.h"

namespace kvs {
namespace {

constexpr std::size_t kPagePanels = 240;
constexpr double kPanelWidth = 108, kPanelHeight = 56;

/// Layers [first, last) in `groups` side by side, each `heads` panels wide, as near to a portrait page as it gets.
struct Page {
  std::size_t first, last, heads;
  std::size_t groups = 1;
  Page(std::size_t first_layer, std::size_t last_layer, std::size_t head_count)
      : first(first_layer), last(last_layer), heads(head_count) {
    constexpr double kPortrait = 0.707;
    double best = HUGE_VAL;
    for (std::size_t candidate = 1; candidate <= layers(); ++candidate) {
      const double width = kPanelWidth * static_cast<double>(candidate * heads);
      const double height = kPanelHeight * static_cast<double>((layers() + candidate - 1) / candidate);
      const double distance = std::abs(std::log(width / height / kPortrait));
      if (distance < best) best = distance, groups = candidate;
    }
    groups = (layers() + rows() - 1) / rows();
  }
  std::size_t layers() const noexcept { return last - first; }
  std::size_t rows() const noexcept { return (layers() + groups - 1) / groups; }
};

FigureImages render_page(const Spectrum& spectrum, std::string_view model_name, bool with_sinks, const Page& page,
                         const Decades& decades) {
  const auto columns = static_cast<double>(page.groups * page.heads), rows = static_cast<double>(page.rows());
  const double width = std::max(560.0, 64 + 26 * static_cast<double>(page.groups - 1) + kPanelWidth * columns);
  const double height = 112 + kPanelHeight * rows;
  Figure figure(embedded::figure_spectrum_heads, width, height);
  FigureData power, panel;
  std::size_t bins = 0;
  for (std::size_t layer = page.first; layer < page.last; ++layer) {
    for (std::size_t head = 0; head < page.heads; ++head) {
      for (const StateKind state : spectrum.states) {
        const PowerTable& table = spectrum.table(state, with_sinks);
        bins = table.bins;
        add_curve(power, table.row(layer, head), 4, 0);
      }
      const std::size_t group = (layer - page.first) / page.rows(), line = (layer - page.first) % page.rows();
      panel.row({static_cast<double>(group * page.heads + head), static_cast<double>(line),
                 static_cast<double>(spectrum.layers[layer]), static_cast<double>(head)});
    }
  }
  std::size_t number = 0;
  for (const StateKind state : spectrum.states) {
    const std::string suffix = std::to_string(++number);
    figure.set("state_title_" + suffix, title_of(state));
    figure.set("state_color_" + suffix, state == StateKind::kKPre    ? "#0072B2"
                                        : state == StateKind::kKPost ? "#D55E00"
                                                                     : "#009E73");
  }
  return figure.data("power", power)
      .data("panel", panel)
      .set("panels", static_cast<double>(page.layers() * page.heads))
      .set("columns", columns)
      .set("rows", rows)
      .set("heads", static_cast<double>(page.heads))
      .set("groups", static_cast<double>(page.groups))
      .set("states", static_cast<double>(spectrum.states.size()))
      .set("y_low", decades.low)
      .set("y_high", decades.high)
      .set("x_high", static_cast<double>(bins))
      .set("dc_position", kDcPosition)
      .set("heading", "Power by layer and head: " + spectrum_subject(spectrum, model_name, with_sinks))
      .set("x_label", bin_axis(spectrum, with_sinks))
      .render();
}

std::size_t layers_per_page(std::size_t heads) noexcept { return std::max<std::size_t>(1, kPagePanels / heads); }

}  // namespace

std::size_t spectrum_heads_pages(std::size_t layers, std::size_t heads) noexcept {
  return (layers + layers_per_page(heads) - 1) / layers_per_page(heads);
}

std::vector<FigureImages> render_spectrum_heads(const Spectrum& spectrum, std::string_view model_name,
                                                bool with_sinks) {
  Decades decades = decades_of(spectrum, *spectrum.states.begin(), with_sinks);
  for (const StateKind state : spectrum.states) decades = around(decades, decades_of(spectrum, state, with_sinks));
  const std::size_t heads = spectrum.table(*spectrum.states.begin(), with_sinks).heads;
  const std::size_t step = layers_per_page(heads);
  std::vector<FigureImages> pages;
  for (std::size_t first = 0; first < spectrum.layers.size(); first += step) {
    const Page page(first, std::min(first + step, spectrum.layers.size()), heads);
    pages.push_back(render_page(spectrum, model_name, with_sinks, page, decades));
  }
  return pages;
}

}  // namespace kvs
