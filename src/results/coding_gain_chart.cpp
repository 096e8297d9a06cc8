#include "results/coding_gain_chart.h"

#include <algorithm>
#include <array>

#include "draw/numbers.h"

namespace kvs {
namespace {

/// Places in the colours of series: the mean in grey, then from cold to warm.
constexpr std::array<std::size_t, 6> kStepColours{7, 5, 0, 2, 1, 4};

draw::Panel stacked_panel(const StateGainSteps& state, const std::vector<std::size_t>& layers,
                          const std::vector<std::string>& step_names) {
  draw::Panel panel{.key = state.key,
                    .title = state.title,
                    .description = "Bits a real that each step of a transform coder saves, stacked, by layer.",
                    .x = {},
                    .y = {}};
  std::vector<double> sums(layers.size());
  double low = 0, high = 0.1;
  for (std::size_t step = 0; step < state.steps.size(); ++step) {
    draw::Bars bars{step_names[step], draw::series_colour(kStepColours[step % kStepColours.size()]), {}};
    for (std::size_t n = 0; n < state.steps[step].size(); ++n) {
      const double gain = state.steps[step][n], below = sums[n], at = static_cast<double>(n);
      sums[n] += gain;
      low = std::min(low, sums[n]);
      high = std::max(high, sums[n]);
      bars.bars.push_back({at + 0.11, at + 0.89, below, sums[n],
                           step_names[step] + ", layer " + std::to_string(layers[n]) + ": " + draw::shown(gain, 2) +
                               "\u00A0bits a real"});
    }
    panel.bars.push_back(std::move(bars));
  }
  panel.x.name = "layer";
  panel.x.names = draw::number_names(layers);
  panel.y = {.axis = draw::Axis::rounded(low, high, 6), .name = "bits a real saved", .most = 6};
  return panel;
}

}  // namespace

draw::Chart coding_gain_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                              const std::vector<std::string>& step_names, const std::vector<StateGainSteps>& states) {
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = std::clamp(18.0 * static_cast<double>(layers.size()), 480.0, 900.0),
                    .plot_height = 170};
  for (const StateGainSteps& state : states) chart.panels.push_back(stacked_panel(state, layers, step_names));
  draw::arrange(chart, 1);
  return chart;
}

}  // namespace kvs
