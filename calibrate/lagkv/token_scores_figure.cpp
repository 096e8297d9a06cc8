#include "calibrate/lagkv/token_scores_figure.h"

#include <algorithm>

#include "embedded/figure_token_scores.h"

namespace kvs {

FigureImages render_token_scores(const std::string& heading, std::span<const std::size_t> layers,
                                 const TokenScores& scores) {
  constexpr std::size_t kMostColumns = 64;
  constexpr double kScale = 0.995;  // of the cells lie within the colour scale: a single token would set it else
  const std::size_t width = (scores.tokens + kMostColumns - 1) / kMostColumns,  // tokens of a column
      columns = (scores.tokens + width - 1) / width, rows = layers.size() * scores.heads;
  FigureData data, kept;
  std::vector<double> drawn;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (std::size_t head = 0; head < scores.heads; ++head) {
      std::vector<double> largest, share;
      for (std::size_t first = 0; first < scores.tokens; first += width) {
        const std::size_t end = std::min(first + width, scores.tokens);
        largest.push_back(std::ranges::max(scores.row(layer, head).subspan(first, end - first)));
        double count = 0;
        for (std::size_t token = first; token < end; ++token) count += scores.is_kept(layer, head, token) ? 1 : 0;
        share.push_back(count / static_cast<double>(end - first));
        drawn.push_back(largest.back());
      }
      data.row(largest);
      kept.row(share);
    }
  }
  std::ranges::sort(drawn);
  std::string tics = "\"(";  // a tic in the middle of each fifth layer's heads
  for (std::size_t n = 0; n<layers.size(); n += layers.size()> 10 ? 5 : 1)
    tics += (n > 0 ? ", '" : "'") + std::to_string(layers[n]) + "' " +
            std::to_string(static_cast<double>(n * scores.heads) + 0.5 * static_cast<double>(scores.heads - 1));
  const double height = std::clamp(4.0 * static_cast<double>(rows), 60.0, 420.0);
  Figure figure(embedded::figure_token_scores, 860, 150 + 2 * height);
  return figure.data("score", data)
      .data("kept", kept)
      .set("rows", static_cast<double>(rows))
      .set("columns", static_cast<double>(columns))
      .set("width", static_cast<double>(width))
      .set("first_token", static_cast<double>(scores.first))
      .set("low", drawn.front())
      .set("high", std::max(drawn[static_cast<std::size_t>(kScale * static_cast<double>(drawn.size() - 1))],
                            drawn.front() + 1e-3))
      .set_raw("layer_names", tics + ")\"")
      .set("heading", heading)
      .render();
}

}  // namespace kvs
