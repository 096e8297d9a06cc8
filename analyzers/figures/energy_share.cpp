#include "analyzers/figures/energy_share.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analyzers/figures/bands.h"
#include "analyzers/spectrum_summary.h"
#include "draw/axes.h"
#include "embedded/figure_energy_share.h"

namespace kvs {

FigureImages render_energy_share(const Spectrum& spectrum, std::string_view model_name, bool with_sinks,
                                 double percent) {
  const PowerTable& first = spectrum.table(*spectrum.states.begin(), with_sinks);
  const std::size_t samples = spectrum.tokens - (with_sinks ? 0 : spectrum.sinks);
  const auto rows = static_cast<double>(spectrum.states.size());
  const double map_width = std::clamp(11.0 * static_cast<double>(first.layers), 160.0, 460.0);
  const double map_height = std::clamp(16.0 * static_cast<double>(first.heads), 44.0, 200.0);
  const double width = 160 + 2 * map_width, height = 94 + rows * map_height + 24 * (rows - 1);
  Figure figure(embedded::figure_energy_share, width, height);
  FigureData share;
  std::size_t row = 0;
  for (const StateKind state : spectrum.states) {
    const PowerTable& table = spectrum.table(state, with_sinks);
    for (const bool with_dc : {true, false}) {
      for (std::size_t head = 0; head < table.heads; ++head) {
        std::vector<double> line;
        for (std::size_t layer = 0; layer < table.layers; ++layer) {
          const std::vector<double> curve =
              cumulative_energy(table.row(layer, head), spectrum.transform, samples, with_dc);
          line.push_back(curve[low_bins(percent, curve.size() - 1)]);
        }
        share.row(line);
      }
      share.next_block();
    }
    figure.set("row_title_" + std::to_string(++row), title_of(state));
  }
  const std::string per_cent = short_number(percent);
  return figure.data("share", share)
      .set("rows", rows)
      .set("heads", static_cast<double>(first.heads))
      .set("layers", static_cast<double>(first.layers))
      .set_raw("layer_names", index_tics(spectrum.layers, 8))
      .set("share_label", "share of the energy")
      .set("heading",
           "Energy in the lowest " + per_cent + " % of bins: " + spectrum_subject(spectrum, model_name, with_sinks))
      .render();
}

}  // namespace kvs
