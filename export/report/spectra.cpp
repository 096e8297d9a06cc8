#include <algorithm>
#include <array>

#include "export/report/curves.h"
#include "export/report/heat_map.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"

namespace kvs {
namespace {

constexpr double kTenth = 10;  // percent of the bins

struct StateWords {
  std::string_view key, title, plural;
};
constexpr std::array kStateWords{StateWords{"k_pre", "Keys before RoPE", "keys before RoPE"},
                                 StateWords{"k_post", "Keys after RoPE", "keys after RoPE"},
                                 StateWords{"v", "Values", "values"}};

/// Position of the lowest tenth in `low_percents`.
std::size_t tenth_of(const JsonCursor& root) {
  const std::vector<double> percents = reals(root.at("low_percents"));
  const auto at = std::ranges::find(percents, kTenth);
  if (at == percents.end()) root.at("low_percents").fail("a list with 10");
  return static_cast<std::size_t>(at - percents.begin());
}

/// Shares of the energy in the lowest tenth of the bins by layer.
std::vector<double> low_shares(const JsonCursor& summaries, std::size_t tenth) {
  std::vector<double> shares;
  const JsonCursor list = summaries.at("low_share");
  for (std::size_t n = 0; n < list.array_size(); ++n) shares.push_back(list.at(n).at(tenth).real());
  return shares;
}

std::string spectrum_extent(const Output& output) {
  const JsonCursor root = output.root();
  return shown_count(root.at("documents").unsigned_integer()) + " documents of " +
         shown_count(root.at("tokens").unsigned_integer()) + " tokens";
}

std::string drawing_id(const std::string& prefix, std::size_t file, std::string_view state) {
  return prefix + "-" + std::to_string(file) + "-" + std::string(state);
}

Markup power_drawing(const Output& output, std::size_t file, const StateWords& state) {
  const JsonCursor curve = output.root().at("states").at(state.key).at("all_tokens").at("curve");
  Curves curves{
      .words = {drawing_id("power", file, state.key), std::string(state.title),
                "Power of " + std::string(state.plural) + " by frequency along the token axis, one curve for " +
                    "each layer, light for the first and strong for the last; both axes are logarithmic."},
      .x = reals(curve.at("bins")),
      .y = {},
      .names = {},
      .x_name = "frequency bin",
      .y_name = "power"};
  const JsonCursor power = curve.at("power");
  const auto layers = indices(output.root().at("layers"));
  for (std::size_t n = 0; n < power.array_size(); ++n) {
    curves.y.push_back(reals(power.at(n)));
    if (curves.y.back().size() != curves.x.size()) power.at(n).fail(std::to_string(curves.x.size()) + " bands");
    curves.names.push_back(n < layers.size() ? "layer " + std::to_string(layers[n]) : "");
  }
  return draw_curves(curves);
}

/// Where the energy lies by layer and head.
Markup share_map(const Output& output, std::size_t file, const StateWords& state, std::size_t tenth) {
  const JsonCursor root = output.root();
  const JsonCursor heads = root.at("states").at(state.key).at("all_tokens").at("with_dc").at("heads");
  HeatMap map{.words = {drawing_id("share", file, state.key), std::string(state.title),
                        "Share of the energy of " + std::string(state.plural) +
                            " in the lowest tenth of the frequencies, by KV head and layer."},
              .row_word = "head",
              .column_word = "layer",
              .rows = {},
              .columns = {},
              .colours = {},
              .values = {},
              .key = sequential_key(shown_percent(0), shown_percent(1))};
  for (const std::size_t layer : indices(root.at("layers"))) map.columns.push_back(std::to_string(layer));
  if (heads.array_size() != map.columns.size()) heads.fail(std::to_string(map.columns.size()) + " layers");
  for (std::size_t layer = 0; layer < heads.array_size(); ++layer) {
    const std::vector<double> shares = low_shares(heads.at(layer), tenth);
    if (layer == 0) {
      map.colours.resize(shares.size());
      map.values.resize(shares.size());
      for (std::size_t head = 0; head < shares.size(); ++head) map.rows.push_back(std::to_string(head));
    }
    if (shares.size() != map.rows.size()) heads.at(layer).fail("as many heads as in the first layer");
    for (std::size_t head = 0; head < shares.size(); ++head) {
      map.colours[head].push_back(sequential_class(shares[head]));
      map.values[head].push_back(shown_percent(shares[head]));
    }
  }
  return heat_map(map);
}

void add_spectra_findings(const Output& output, std::size_t tenth, std::vector<std::string>& findings) {
  std::string held, rest;
  for (const StateWords& state : kStateWords) {
    const JsonCursor states = output.root().at("states");
    if (!states.has(state.key)) continue;
    const JsonCursor all = states.at(state.key).at("all_tokens");
    const double share = mean_of(low_shares(all.at("with_dc").at("layers"), tenth));
    const double without = mean_of(low_shares(all.at("without_dc").at("layers"), tenth));
    held += (held.empty() ? "" : ", ") + shown_percent(share) + " of the energy of " + std::string(state.plural);
    rest += (rest.empty() ? "" : ", ") + shown_percent(without) + " of " + std::string(state.plural);
  }
  if (!held.empty())
    findings.push_back("The lowest tenth of the frequencies holds " + held +
                       ". Without the mean of each channel (DC) it holds " + rest +
                       "; white noise would have 10\u00A0%.");
}

}  // namespace

Section spectra_section(const ReportInputs& inputs) {
  Section section{"spectra", "Spectra", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kSpectrum)) {
    const JsonCursor root = output->root(), states = root.at("states");
    const std::size_t tenth = tenth_of(root);
    Markup curves, maps;
    for (const StateWords& state : kStateWords) {
      if (!states.has(state.key)) continue;
      if (states.at(state.key).at("all_tokens").has("curve")) curves += power_drawing(*output, file, state);
      maps += share_map(*output, file, state, tenth);
    }
    const std::string& command = root.at("command").string();
    if (!curves.empty())
      section.body +=
          figure(curves,
                 "Power along the token axis by layer, the first layer lightest: " + spectrum_extent(*output) + ", " +
                     (root.at("transform").string() == "dct" ? "DCT" : "DFT") +
                     ". Neighbouring bins are averaged over a twelfth of an octave; DC is left out.",
                 command);
    section.body +=
        figure(maps, "Share of the energy in the lowest tenth of the frequencies, by layer and KV head.", command);
    add_spectra_findings(*output, tenth, section.findings);
    ++file;
  }
  return section;
}

}  // namespace kvs
