#include "analyzers/figures/spectrum_layers.h"

#include <string>

#include "analyzers/figures/bands.h"
#include "embedded/figure_spectrum_layers.h"

namespace kvs {

FigureImages render_spectrum_layers(const Spectrum& spectrum, std::string_view model_name, bool with_sinks) {
  constexpr double kPanelWidth = 250, kSides = 110, kHeight = 300;
  const auto panels = static_cast<double>(spectrum.states.size());
  Figure figure(embedded::figure_spectrum_layers, kSides + kPanelWidth * panels, kHeight);
  FigureData power;
  Decades before;
  std::size_t panel = 0;
  for (const StateKind state : spectrum.states) {
    const PowerTable& table = spectrum.table(state, with_sinks);
    for (std::size_t layer = 0; layer < table.layers; ++layer) {
      add_curve(power, table.layer_mean(layer), 12, static_cast<double>(spectrum.layers[layer]));
    }
    const Decades decades = decades_of(spectrum, state, with_sinks);
    const std::string suffix = std::to_string(++panel);
    figure.set("panel_title_" + suffix, title_of(state))
        .set("y_low_" + suffix, decades.low)
        .set("y_high_" + suffix, decades.high)
        .set("new_range_" + suffix, panel > 1 && decades != before ? 1 : 0);
    before = decades;
  }
  return figure.data("power", power)
      .set("panels", panels)
      .set("layers", static_cast<double>(spectrum.layers.size()))
      .set("first_layer", static_cast<double>(spectrum.layers.front()))
      .set("last_layer", static_cast<double>(spectrum.layers.back()))
      .set("x_high", static_cast<double>(spectrum.table(*spectrum.states.begin(), with_sinks).bins))
      .set("dc_position", kDcPosition)
      .set("heading", "Power along the token axis by layer: " + spectrum_subject(spectrum, model_name, with_sinks))
      .set("x_label", bin_axis(spectrum, with_sinks))
      .render();
}

}  // namespace kvs
