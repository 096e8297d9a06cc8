#include "analyzers/figures/spectrum_rope.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "analyzers/figures/bands.h"
#include "embedded/figure_spectrum_rope.h"

namespace kvs {
namespace {

constexpr std::size_t kMostPanels = 6, kBandsPerOctave = 6;

/// Up to kMostPanels positions spread evenly from the first to the last of `count`.
std::vector<std::size_t> spread(std::size_t count) {
  const std::size_t panels = std::min(count, kMostPanels);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < panels; ++i) {
    chosen.push_back(panels == 1 ? 0 : (i * (count - 1) + (panels - 1) / 2) / (panels - 1));
  }
  return chosen;
}

/// Rows (bin, mean over heads, least head, most head) with DC apart.
void add_heads(FigureData& data, const PowerTable& table, std::size_t layer) {
  std::vector<std::vector<Band>> heads;
  std::vector<double> dc;
  for (std::size_t head = 0; head < table.heads; ++head) {
    heads.push_back(log_bands(table.row(layer, head), kBandsPerOctave));
    dc.push_back(table.row(layer, head)[0]);
  }
  const auto add_row = [&](double bin, const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double mean = sum / static_cast<double>(values.size());
    data.row({bin, mean > 0 ? mean : std::numeric_limits<double>::quiet_NaN(), *least, *most});
  };
  add_row(kDcPosition, dc);
  data.blank();
  for (std::size_t i = 0; i < heads.front().size(); ++i) {
    std::vector<double> values;
    values.reserve(heads.size());
    for (const auto& head : heads) values.push_back(head[i].power);
    add_row(heads.front()[i].bin, values);
  }
  data.next_block();
}

}  // namespace

FigureImages render_spectrum_rope(const Spectrum& spectrum, std::string_view model_name, bool with_sinks) {
  const PowerTable& before = spectrum.table(StateKind::kKPre, with_sinks);
  const PowerTable& after = spectrum.table(StateKind::kKPost, with_sinks);
  const std::vector<std::size_t> chosen = spread(spectrum.layers.size());
  const std::size_t columns = std::min<std::size_t>(3, chosen.size()), rows = (chosen.size() + columns - 1) / columns;
  Figure figure(embedded::figure_spectrum_rope, 120 + 230 * static_cast<double>(columns),
                110 + 190 * static_cast<double>(rows));
  FigureData power;
  for (std::size_t panel = 0; panel < chosen.size(); ++panel) {
    add_heads(power, before, chosen[panel]);
    add_heads(power, after, chosen[panel]);
    figure.set("panel_title_" + std::to_string(panel + 1), "Layer " + std::to_string(spectrum.layers[chosen[panel]]));
  }
  const Decades decades = decades_of(spectrum, StateKind::kKPre, with_sinks);
  return figure.data("power", power)
      .set("panels", static_cast<double>(chosen.size()))
      .set("columns", static_cast<double>(columns))
      .set("rows", static_cast<double>(rows))
      .set("y_low", decades.low)
      .set("y_high", decades.high)
      .set("x_high", static_cast<double>(before.bins))
      .set("dc_position", kDcPosition)
      .set("heading", "Keys before and after RoPE: " + spectrum_subject(spectrum, model_name, with_sinks))
      .set("x_label", bin_axis(spectrum, with_sinks))
      .render();
}

}  // namespace kvs
