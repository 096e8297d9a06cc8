#include <algorithm>

#include "calibrate/elitekv/config.h"
#include "eval/paired_difference.h"
#include "export/report/heat_map.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

constexpr std::size_t kMostHeadMaps = 16;  // drawn apart

/// A config's chunks beside what they are counted against.
struct EliteSets {
  EliteConfig config;
  std::size_t heads = 0, chunks = 0;  // of a layer, of a head
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

std::vector<std::string> chunk_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < count; ++n) names.push_back(std::to_string(n));
  return names;
}

HeatMap empty_elite_map(const EliteSets& sets, DrawingText words) {
  HeatMap map{.words = std::move(words),
              .row_word = "layer",
              .column_word = "chunk of channels",
              .rows = {},
              .columns = chunk_names(sets.chunks),
              .colours = {},
              .values = {},
              .key = {}};
  for (const std::size_t layer : sets.config.layers) map.rows.push_back(std::to_string(layer));
  map.colours.assign(sets.config.layers.size(), std::vector<std::string>(sets.chunks));
  map.values.assign(sets.config.layers.size(), std::vector<std::string>(sets.chunks, "not picked"));
  return map;
}

/// How many heads of a layer keep each chunk.
Markup kept_map(const EliteSets& sets, const std::string& id) {
  HeatMap map = empty_elite_map(sets, {id + "-shares", "Heads that keep a chunk",
                                       "Share of the heads of a layer that keep a chunk rotated, by layer and chunk."});
  map.key = sequential_key("no head", "all");
  for (std::size_t n = 0; n < sets.config.layers.size(); ++n) {
    std::vector<std::size_t> kept(sets.chunks);
    for (const ElitePicks& head : sets.config.picks[n])
      for (const std::size_t chunk : head.chunks) ++kept[chunk];
    for (std::size_t chunk = 0; chunk < sets.chunks; ++chunk) {
      map.colours[n][chunk] = sequential_class(static_cast<double>(kept[chunk]) / static_cast<double>(sets.heads));
      map.values[n][chunk] = std::to_string(kept[chunk]) + " of " + counted(sets.heads, "head");
    }
  }
  return heat_map(map);
}

/// In which order a head's chunks were picked: the strongest colour first.
Markup pick_order(const EliteSets& sets, const std::string& id, std::size_t head) {
  const std::string number = std::to_string(head);
  HeatMap map =
      empty_elite_map(sets, {id + "-head-" + number, "Head " + number,
                             "Order in which the chunks of head " + number + " were picked, by layer and chunk."});
  std::size_t most = 1;
  for (const auto& layer : sets.config.picks) most = std::max(most, layer[head].chunks.size());
  map.key = sequential_key("last picked", "first");
  map.key.erase(map.key.begin(), map.key.begin() + 2);  // the palest mean nothing here: no pick has them
  map.key.front().second = "last picked";
  for (std::size_t n = 0; n < sets.config.layers.size(); ++n)
    for (std::size_t pick = 0; pick < sets.config.picks[n][head].chunks.size(); ++pick) {
      const double early = 1 - static_cast<double>(pick) / static_cast<double>(most);
      const std::size_t chunk = sets.config.picks[n][head].chunks[pick];
      map.colours[n][chunk] = sequential_class(0.17 + 0.82 * early);
      map.values[n][chunk] = "pick " + std::to_string(pick + 1);
    }
  return heat_map(map);
}

/// Chunks by the share of all heads that keep them.
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

}  // namespace

Section elite_section(const ReportInputs& inputs) {
  Section section{"elite", "EliteKV maps", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    if (output->root().at("method").string() != "elitekv") continue;
    const EliteSets sets = elite_sets(*output);
    if (sets.empty()) continue;
    const std::string id = "elite-" + std::to_string(file++);
    Markup drawings = kept_map(sets, id);
    for (std::size_t head = 0; head < std::min(sets.heads, kMostHeadMaps); ++head)
      drawings += pick_order(sets, id, head);
    std::string caption = output->name +
                          ": chunks of two channels that RoPE goes on rotating, by layer; chunk 0 turns " +
                          "fastest. In the maps of single heads the strongest colour was picked first.";
    if (sets.heads > kMostHeadMaps)
      caption += " Of " + counted(sets.heads, "head") + " the first " + shown_count(kMostHeadMaps) + " are drawn.";
    section.body += figure(drawings, caption, output->root().at("calibration").at("command").string()) +
                    trials_table(read_elite_trials(output->json, output->name));
    section.findings.push_back(elite_finding(sets));
    const JsonCursor calibration = output->root().at("calibration");
    if (calibration.has("verdict"))
      section.findings.push_back(output->name + ": " + calibration.at("verdict").string() + ".");
  }
  return section;
}

}  // namespace kvs
