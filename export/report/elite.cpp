// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "calibrate/elitekv/charts.h"
#include "draw/svg.h"
#include "eval/paired_difference.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

constexpr std::size_t kMaxHeadMaps = 16;  // maximum number of heads with their own map

/// A config's chunks with the shape that they are counted against.
struct EliteSets {
  EliteConfig config;
  std::size_t heads = 0, chunks = 0;  // heads per layer, chunks per head
  EliteShape shape;

  bool empty() const noexcept { return config.layers.empty() || heads == 0; }
  std::size_t all_heads() const noexcept { return config.layers.size() * heads; }
};

EliteSets elite_sets(const Output& output) {
  constexpr std::uint64_t kMost = 1 << 16;
  const JsonCursor model = output.root().at("model");
  EliteSets sets{.config = read_elite_config(output.json, output.name), .shape = {}};
  if (!sets.config.picks.empty()) sets.heads = sets.config.picks.front().size();
  sets.chunks = model.at("rope").at("rotary_dim").unsigned_integer(kMost) / 2;
  sets.shape.kv_heads = model.at("kv_heads").unsigned_integer(kMost);
  sets.shape.head_dim = model.at("head_dim").unsigned_integer(kMost);
  return sets;
}

/// Draws how many heads keep each chunk, and the order in which the first heads picked their chunks.
Markup elite_drawings(const EliteSets& sets, const std::string& id) {
  EliteMap map = elite_map(sets.config, sets.chunks);
  map.head_word = "Head";
  draw::Chart heads = elite_chart(map);
  if (heads.panels.size() > kMaxHeadMaps) heads.panels.resize(kMaxHeadMaps);
  return page_drawings(elite_share_chart(map), id) + page_drawings(heads, id);
}

/// Returns the chunks with the share of all heads that keep them.
std::vector<std::pair<double, std::size_t>> favourites(const EliteSets& sets) {
  std::vector<std::pair<double, std::size_t>> shares(sets.chunks);
  for (std::size_t chunk = 0; chunk < sets.chunks; ++chunk) shares[chunk].second = chunk;
  for (const auto& layer : sets.config.picks)
    for (const ElitePicks& head : layer)
      for (const std::size_t chunk : head.chunks) shares[chunk].first += 1 / static_cast<double>(sets.all_heads());
  std::ranges::stable_sort(shares, std::greater{}, &std::pair<double, std::size_t>::first);
  return shares;
}

std::string elite_finding(const EliteSets& sets) {
  std::size_t picked = 0, values = 0;
  for (std::size_t n = 0; n < sets.config.layers.size(); ++n) {
    for (const ElitePicks& head : sets.config.picks[n]) picked += head.chunks.size();
    values += sets.config.size_of(n).values(sets.shape);
  }
  const auto shares = favourites(sets);
  std::string words = "EliteKV rotates " +
                      shown_short(static_cast<double>(picked) / static_cast<double>(sets.all_heads())) + " of " +
                      shown_count(sets.chunks) + " chunks in each head; most often chunk " +
                      std::to_string(shares[0].second) + " (in " + shown_percent(shares[0].first) + " of the heads)";
  if (shares.size() > 1)
    words += " and chunk " + std::to_string(shares[1].second) + " (" + shown_percent(shares[1].first) + ")";
  if (!sets.config.rank) return words + ".";
  const std::size_t full = 2 * sets.shape.kv_heads * sets.shape.head_dim * sets.config.layers.size();
  return words + ". Its cache holds " + shown_percent(static_cast<double>(values) / static_cast<double>(full)) +
         " of the values of these layers.";
}

Markup trials_table(const std::vector<EliteTrial>& trials) {
  Table table("Sizes that were tried on documents held out", {{"r", true, "rotated chunks of a head"},
                                                              {"d_ckv", true, "values of the latent"},
                                                              {"Factorisation", false},
                                                              {"Perplexity", true, "± its standard error"},
                                                              {"Against full"}});
  for (const EliteTrial& trial : trials) {
    const double change = growth(trial.nll - trial.nll_full);
    table.row(
        {{shown_count(trial.r), static_cast<double>(trial.r)},
         {shown_count(trial.d_ckv), static_cast<double>(trial.d_ckv)},
         trial.joint ? "joint" : "separate",
         trial.is_finite() ? Cell(perplexity_words(trial.nll, trial.nll_error), trial.nll) : Cell("NaN or infinity"),
         trial.is_finite() ? Cell(shown_change(change), change) : Cell::missing()});
  }
  return table.empty() ? Markup() : table.markup();
}

/// Draws the perplexity of the sizes against r. Returns nothing for fewer than two sizes.
Markup trials_drawing(const std::vector<EliteTrial>& trials, const std::string& id, const std::string& command) {
  EliteSweep sweep = elite_sweep(trials);
  if (sweep.trials.size() < 2) return {};
  std::ranges::stable_sort(sweep.trials, {}, &EliteSweep::Trial::r);
  const draw::Chart chart = elite_sweep_chart(sweep);
  return figure(page_drawings(chart, id) + page_legend(chart), "Perplexity of the sizes that were tried.", command);
}

}  // namespace

Section elite_section(const ReportInputs& inputs) {
  Section section{"elite", "EliteKV maps", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    if (output->root().at("method").string() != "elitekv") continue;
    const EliteSets sets = elite_sets(*output);
    if (sets.empty()) continue;
    const std::string id = "elite-" + std::to_string(file++);
    std::string caption = output->name +
                          ": chunks of two channels that RoPE goes on rotating, by layer; chunk 0 turns " +
                          "fastest. In the maps of single heads the strongest colour was picked first.";
    if (sets.heads > kMaxHeadMaps)
      caption += " Of " + counted(sets.heads, "head") + " the first " + shown_count(kMaxHeadMaps) + " are drawn.";
    const std::string command = output->root().at("calibration").at("command").string();
    const auto trials = read_elite_trials(output->json, output->name);
    section.body +=
        figure(elite_drawings(sets, id), caption, command) + trials_drawing(trials, id, command) + trials_table(trials);
    section.findings.push_back(elite_finding(sets));
    const JsonCursor calibration = output->root().at("calibration");
    if (calibration.has("verdict"))
      section.findings.push_back(output->name + ": " + calibration.at("verdict").string() + ".");
  }
  return section;
}

}  // namespace kvs::inline report
