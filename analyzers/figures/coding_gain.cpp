#include "analyzers/figures/coding_gain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "analyzers/figures/bands.h"
#include "draw/axes.h"
#include "embedded/figure_coding_gain.h"

namespace kvs {
namespace {

/// By step, in the order of the template's colours.
std::array<double, 6> steps_of(const LayerGains& layer, StateKind state) {
  const StateGains& gains = layer.states[state];
  return {gains.layer.mean,        gains.layer.channels,    gains.layer.head,
          gains.whole.value_or(0), layer.joint.value_or(0), gains.layer.tokens.empty() ? 0 : gains.layer.tokens.back()};
}

}  // namespace

FigureImages render_coding_gain(const ModelGains& gains, const std::vector<std::size_t>& layers,
                                std::string_view model_name) {
  FigureData data;
  double panels = 0;
  const double width = 150 + std::clamp(18.0 * static_cast<double>(layers.size()), 480.0, 900.0);
  std::vector<std::string> titles;
  for (const StateKind state : {StateKind::kKPre, StateKind::kV}) {
    if (!gains.shape.states.contains(state)) continue;
    for (std::size_t layer = 0; layer < gains.removed.size(); ++layer) {
      std::vector<double> row{static_cast<double>(layer), 0.0};
      double sum = 0;
      for (const double gain : steps_of(gains.removed[layer], state)) row.push_back(sum += gain);
      data.row(row);
    }
    data.next_block();
    titles.emplace_back(title_of(state));
    ++panels;
  }
  Figure figure(embedded::figure_coding_gain, width, 90 + 210 * panels);
  for (std::size_t n = 0; n < titles.size(); ++n) figure.set("panel_title_" + std::to_string(n + 1), titles[n]);
  const std::size_t blocks = gain_optimism(gains).tokens.size();
  return figure.data("gain", data)
      .set("panels", panels)
      .set("layers", static_cast<double>(layers.size()))
      .set("block", "DCT of " + std::to_string(blocks == 0 ? 0 : kBlockTokens[blocks - 1]) + " tokens")
      .set_raw("layer_names", index_tics(layers, 16))
      .set("heading", "Coding gain: " + std::string(model_name) + " · " + std::to_string(gains.tokens) + " tokens")
      .render();
}

}  // namespace kvs
