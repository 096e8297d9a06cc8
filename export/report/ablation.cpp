#include <algorithm>
#include <cmath>
#include <optional>

#include "calibrate/faedkv/ablation_map_figure.h"
#include "export/report/heat_map.h"
#include "export/report/intervals.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

constexpr std::size_t kMostIntervals = 16;  // chunks whose intervals are drawn

/// What losing a chunk of a layer's spectrum does to perplexity, as a relative change.
struct Loss {
  std::size_t layer = 0, chunk = 0;  // the model's layer
  double delta = 0;
  std::optional<std::pair<double, double>> interval;

  bool is_certain() const { return interval && interval->first > 0; }
};

struct Ablation {
  std::vector<std::size_t> layers;
  std::size_t chunks = 0;
  std::vector<std::vector<Loss>> losses;  // [layer][chunk]
};

Ablation read_ablation(const Output& output) {
  const JsonCursor root = output.root(), ablation = root.at("calibration").at("ablation");
  Ablation result{
      ablation.at("layers").value().get<std::vector<std::size_t>>(), ablation.at("chunks").unsigned_integer(), {}};
  const JsonCursor delta = ablation.at("delta"), interval = ablation.at("interval");
  for (std::size_t n = 0; n < result.layers.size(); ++n) {
    auto& row = result.losses.emplace_back();
    for (std::size_t chunk = 0; chunk < result.chunks; ++chunk) {
      row.push_back({result.layers[n], chunk, delta.at(n).at(chunk).real(), range_of(interval.at(n).at(chunk))});
    }
  }
  return result;
}

std::string value_text(const Loss& loss) {
  return shown_change(loss.delta) + (loss.interval ? " (95\u00A0%: " + shown_range(*loss.interval) + ")" : "");
}

Markup delta_map(const Ablation& ablation, const std::string& id) {
  std::vector<std::vector<double>> values;
  for (const auto& row : ablation.losses) {
    values.emplace_back();
    for (const Loss& loss : row) values.back().push_back(loss.delta);
  }
  const SignedLogScale scale(values);
  const double most = scale.linear * std::sinh(scale.limit);
  HeatMap map{.words = {id + "-map", "Change of perplexity without a chunk",
                        "Change of perplexity when one chunk of one layer's spectrum is lost, by layer and chunk; the "
                        "colour is a signed logarithm."},
              .row_word = "layer",
              .column_word = "frequency chunk",
              .rows = {},
              .columns = {},
              .colours = {},
              .values = {},
              .key = diverging_key(shown_change(-most), "0", shown_change(most))};
  for (const std::size_t layer : ablation.layers) map.rows.push_back(std::to_string(layer));
  for (std::size_t chunk = 0; chunk < ablation.chunks; ++chunk) map.columns.push_back(std::to_string(chunk));
  for (const auto& row : ablation.losses) {
    map.colours.emplace_back();
    map.values.emplace_back();
    for (const Loss& loss : row) {
      map.colours.back().push_back(diverging_class(scale.color(loss.delta) / scale.limit));
      map.values.back().push_back(value_text(loss));
    }
  }
  return heat_map(map);
}

/// The chunks that matter most, first.
std::vector<Loss> ranked_losses(const Ablation& ablation) {
  std::vector<Loss> all;
  for (const auto& row : ablation.losses) all.insert(all.end(), row.begin(), row.end());
  std::ranges::stable_sort(all, std::greater{}, &Loss::delta);
  return all;
}

Markup interval_drawing(const std::vector<Loss>& losses, const std::string& id) {
  Intervals intervals{.words = {id + "-intervals", "The chunks that matter most",
                                "Change of perplexity of the chunks whose loss costs most, each with its 95 % interval "
                                "over documents."},
                      .x_name = "change of perplexity",
                      .rows = {}};
  for (std::size_t n = 0; n < std::min(kMostIntervals, losses.size()); ++n)
    intervals.rows.push_back({"layer " + std::to_string(losses[n].layer) + ", chunk " + std::to_string(losses[n].chunk),
                              losses[n].delta, losses[n].interval, value_text(losses[n])});
  return draw_intervals(intervals);
}

Markup losses_table(const std::vector<Loss>& losses, const std::string& file) {
  constexpr std::size_t kMostRows = 400;
  Table table(
      "Chunks of " + file + (losses.size() > kMostRows ? ", the " + shown_count(kMostRows) + " that matter most" : ""),
      {{"Layer"}, {"Chunk"}, {"Change of perplexity"}, {"95\u00A0%", true, "interval over documents"}});
  for (std::size_t n = 0; n < std::min(kMostRows, losses.size()); ++n) {
    const Loss& loss = losses[n];
    table.row({{std::to_string(loss.layer), static_cast<double>(loss.layer)},
               {std::to_string(loss.chunk), static_cast<double>(loss.chunk)},
               {shown_change(loss.delta), loss.delta},
               interval_cell(loss.interval)});
  }
  return folded("All values as a table", table.markup());
}

std::string ablation_finding(const std::vector<Loss>& losses) {
  const auto certain = static_cast<std::size_t>(std::ranges::count_if(losses, &Loss::is_certain));
  const Loss& worst = losses.front();
  return "Of " + counted(losses.size(), "frequency chunk") + " the one that matters most is chunk " +
         std::to_string(worst.chunk) + " of layer " + std::to_string(worst.layer) +
         ": without it perplexity changes by " + shown_change(worst.delta) + zero_note(worst.interval) +
         ". The interval is above zero for " + shown_count(certain) + " of them" +
         (certain == 0 ? ": these documents are too few to rank the chunks." : ".");
}

}  // namespace

Section ablation_section(const ReportInputs& inputs) {
  Section section{"ablation", "FAEDKV ablation", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    if (!output->root().at("calibration").has("ablation")) continue;
    const Ablation ablation = read_ablation(*output);
    if (ablation.layers.empty() || ablation.chunks == 0) continue;
    const std::string id = "ablation-" + std::to_string(file++);
    const std::vector<Loss> losses = ranked_losses(ablation);
    const JsonCursor calibration = output->root().at("calibration"), found = calibration.at("ablation");
    section.body += figure(delta_map(ablation, id) + interval_drawing(losses, id),
                           output->name + ": each chunk of each layer's spectrum taken away alone (" +
                               found.at("protocol").string() + ", " + found.at("key_space").string() +
                               "); perplexity with all of them " + perplexity_words(found, "ppl_base", "nll_base") +
                               ". Chunk 0 is the lowest; intervals that go beyond the axis are cut.",
                           calibration.at("command").string()) +
                    losses_table(losses, output->name);
    section.findings.push_back(ablation_finding(losses));
  }
  return section;
}

}  // namespace kvs
