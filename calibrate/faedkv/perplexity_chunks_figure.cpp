#include "calibrate/faedkv/perplexity_chunks_figure.h"

#include <algorithm>
#include <limits>
#include <set>

#include "embedded/figure_perplexity_chunks.h"

namespace kvs {

FigureImages render_perplexity_chunks(const PerplexityChunks& sweep) {
  Figure figure(embedded::figure_perplexity_chunks, 600, 300);
  FigureData data;
  std::set<std::size_t> counts;
  std::size_t number = 0;
  for (const PerplexityChunks::Series& series : sweep.series) {
    for (const auto& [chunks, perplexity] : series.points) {
      data.row({static_cast<double>(chunks), perplexity});
      counts.insert(chunks);
    }
    data.next_block();
    figure.set("series_title_" + std::to_string(++number), series.title);
  }
  if (counts.empty()) counts.insert(1);
  std::string tics = "\"(";
  for (const std::size_t count : counts) tics += (tics.size() > 2 ? ", " : "") + std::to_string(count);
  return figure.data("ppl", data)
      .set("series", static_cast<double>(sweep.series.size()))
      .set("base", sweep.base.value_or(std::numeric_limits<double>::quiet_NaN()))
      .set("x_low", static_cast<double>(*counts.begin()) / 1.25)
      .set("x_high", static_cast<double>(*counts.rbegin()) * 1.25)
      .set_raw("chunk_tics", tics + ")\"")
      .set("heading", sweep.heading)
      .render();
}

}  // namespace kvs
