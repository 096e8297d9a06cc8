// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/faedkv_charts.h"
#include "results/panels.h"

namespace kvs::inline report {
namespace {

constexpr std::size_t kMaxIntervals = 16;  // chunks whose intervals are drawn

/// The relative change of perplexity if a chunk of a layer's spectrum is removed.
struct Loss {
  std::size_t layer = 0, chunk = 0;  // the model's layer
  double delta = 0;
  draw::Interval interval;

  bool is_certain() const { return interval && interval->first > 0; }
};

std::string value_text(const Loss& loss) {
  return shown_change(loss.delta) + (loss.interval ? " (95\u00A0%: " + shown_range(*loss.interval) + ")" : "");
}

/// Returns the chunks by loss, the largest first.
std::vector<Loss> ranked_losses(const AblationResult& of) {
  std::vector<Loss> all;
  for (std::size_t n = 0; n < of.layers.size(); ++n)
    for (std::size_t chunk = 0; chunk < of.chunks; ++chunk)
      all.push_back({of.layers[n], chunk, of.delta[n][chunk], of.interval[n][chunk]});
  std::ranges::stable_sort(all, std::greater{}, &Loss::delta);
  return all;
}

draw::Chart interval_chart(const std::vector<Loss>& losses) {
  std::vector<IntervalRow> rows;
  for (std::size_t n = 0; n < std::min(kMaxIntervals, losses.size()); ++n)
    rows.push_back({"layer " + std::to_string(losses[n].layer) + ", chunk " + std::to_string(losses[n].chunk),
                    losses[n].delta, losses[n].interval, value_text(losses[n])});
  return {.panels = {interval_panel("intervals", "The chunks that matter most",
                                    "Change of perplexity of the chunks whose loss costs most, each with its 95 % "
                                    "interval over documents.",
                                    "change of perplexity", rows)},
          .plot_height = interval_height(rows.size())};
}

Markup losses_table(const std::vector<Loss>& losses, const std::string& file) {
  constexpr std::size_t kMaxRows = 400;
  Table table(
      "Chunks of " + file + (losses.size() > kMaxRows ? ", the " + shown_count(kMaxRows) + " that matter most" : ""),
      {{"Layer"}, {"Chunk"}, {"Change of perplexity"}, {"95\u00A0%", true, "interval over documents"}});
  for (std::size_t n = 0; n < std::min(kMaxRows, losses.size()); ++n) {
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
    const JsonCursor calibration = output->root().at("calibration");
    if (!calibration.has("ablation")) continue;
    const auto ablation = from_json<AblationResult>(calibration.at("ablation"));
    if (ablation.layers.empty() || ablation.chunks == 0) continue;
    const std::string id = "ablation-" + std::to_string(file++);
    const std::vector<Loss> losses = ranked_losses(ablation);
    section.body +=
        figure(page_drawings(ablation_chart("", ablation), id) + page_drawings(interval_chart(losses), id),
               output->name + ": each chunk of each layer's spectrum taken away alone (" + ablation.protocol + ", " +
                   ablation.key_space + "); perplexity with all of them " +
                   (ablation.ppl_base ? shown(*ablation.ppl_base, 4) : perplexity_words(ablation.nll_base)) +
                   ". Chunk 0 is the lowest; intervals that go beyond the axis are cut.",
               calibration.at("command").string()) +
        losses_table(losses, output->name);
    section.findings.push_back(ablation_finding(losses));
  }
  return section;
}

}  // namespace kvs::inline report
