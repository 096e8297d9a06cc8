#include "calibrate/faedkv/filter_effect_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "embedded/figure_filter_effect.h"

namespace kvs {
namespace {

/// The decades of the energy before; what filtering leaves as rounding lies below and is not drawn.
std::pair<int, int> energy_decades(const std::vector<double>& energy) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double value : energy) {
    if (value > 0) least = std::min(least, value);
    most = std::max(most, value);
  }
  if (most <= 0) return {0, 1};
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  return {std::min(high - 1, std::max(high - 9, static_cast<int>(std::floor(std::log10(least))))), high};
}

}  // namespace

FigureImages render_filter_effect(const FilterEffect& effect) {
  Figure figure(embedded::figure_filter_effect, 90 + 330 * static_cast<double>(effect.panels.size()), 440);
  FigureData states, energy;
  std::size_t number = 0, bins = 2;
  for (const FilterEffect::Panel& panel : effect.panels) {
    for (std::size_t t = 0; t < panel.before.size(); ++t) {
      states.row({static_cast<double>(effect.first_token + t), panel.before[t], panel.after[t]});
    }
    states.next_block();
    const auto [low, high] = energy_decades(panel.energy_before);
    const double floor = std::pow(10.0, low);
    const auto drawn = [floor](double value) {
      return value >= floor ? value : std::numeric_limits<double>::quiet_NaN();
    };
    for (std::size_t k = 0; k < panel.energy_before.size(); ++k) {
      energy.row({static_cast<double>(k), drawn(panel.energy_before[k]), drawn(panel.energy_after[k])});
    }
    energy.next_block();
    bins = std::max(bins, panel.energy_before.size());
    const std::string suffix = std::to_string(++number);
    figure.set("panel_title_" + suffix, panel.title)
        .set("energy_low_" + suffix, low)
        .set("energy_high_" + suffix, high);
  }
  for (std::size_t i = 0; i < effect.removed.size(); ++i) {
    figure.set("removed_from_" + std::to_string(i + 1), static_cast<double>(effect.removed[i].first))
        .set("removed_to_" + std::to_string(i + 1), static_cast<double>(effect.removed[i].second));
  }
  return figure.data("states", states)
      .data("energy", energy)
      .set("panels", static_cast<double>(effect.panels.size()))
      .set("removed", static_cast<double>(effect.removed.size()))
      .set("bins", static_cast<double>(bins))
      .set("bin_label", effect.removed.empty() ? "frequency bin" : "frequency bin (grey: removed)")
      .set("heading", effect.heading)
      .render();
}

}  // namespace kvs
