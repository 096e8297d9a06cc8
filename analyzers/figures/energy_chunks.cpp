#include "analyzers/figures/energy_chunks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "analyzers/figures/bands.h"
#include "analyzers/spectrum_summary.h"
#include "draw/axes.h"
#include "embedded/figure_energy_chunks.h"

namespace kvs {

FigureImages render_energy_chunks(const Spectrum& spectrum, std::string_view model_name, bool with_sinks) {
  constexpr double kLeastShare = 1e-6;
  const std::size_t samples = spectrum.tokens - (with_sinks ? 0 : spectrum.sinks);
  const auto maps = static_cast<double>(spectrum.states.size());
  FigureData data;
  double low = 0.1;
  std::size_t chunks = 0, map = 0;
  std::vector<std::string> titles;
  for (const StateKind state : spectrum.states) {
    const PowerTable& table = spectrum.table(state, with_sinks);
    for (std::size_t layer = 0; layer < table.layers; ++layer) {
      std::vector<double> shares = chunk_shares(table.layer_mean(layer), spectrum.transform, samples);
      chunks = shares.size();
      for (double& share : shares) {
        share = std::max(share, kLeastShare);
        low = std::min(low, share);
        share = std::log10(share);
      }
      data.row(shares);
    }
    data.next_block();
    titles.emplace_back(title_of(state));
  }
  const double map_width = std::clamp(12.0 * static_cast<double>(chunks), 110.0, 270.0);
  const double map_height = std::clamp(11.0 * static_cast<double>(spectrum.layers.size()), 90.0, 460.0);
  Figure figure(embedded::figure_energy_chunks, 160 + maps * map_width + 16 * (maps - 1), 104 + map_height);
  for (const std::string& title : titles) figure.set("map_title_" + std::to_string(++map), title);
  std::vector<std::size_t> numbers(chunks);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return figure.data("share", data)
      .set("maps", maps)
      .set("layers", static_cast<double>(spectrum.layers.size()))
      .set("chunks", static_cast<double>(chunks))
      .set("low", std::floor(std::log10(low)))
      .set_raw("layer_names", index_tics(spectrum.layers, 8))
      .set_raw("chunk_names", index_tics(numbers, 8))
      .set("heading", "Energy by chunk: " + spectrum_subject(spectrum, model_name, with_sinks))
      .render();
}

}  // namespace kvs
