#include <algorithm>
#include <array>

#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "results/spectrum_charts.h"

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

/// One curve for each layer; nothing of a file of an older program.
std::vector<StatePower> read_power(const JsonCursor& root) {
  std::vector<StatePower> all;
  for (const StateWords& state : kStateWords) {
    if (!root.at("states").has(state.key)) continue;
    const JsonCursor tables = root.at("states").at(state.key).at("all_tokens");
    if (!tables.has("curve")) continue;
    const JsonCursor curve = tables.at("curve"), power = curve.at("power");
    StatePower& one =
        all.emplace_back(StatePower{std::string(state.key), std::string(state.title), reals(curve.at("bins"))});
    expect_length(power, root.at("layers").array_size(), "layers");
    for (std::size_t n = 0; n < power.array_size(); ++n) {
      one.power.push_back(reals(power.at(n)));
      if (one.power.back().size() != one.bins.size()) power.at(n).fail(std::to_string(one.bins.size()) + " bands");
    }
  }
  return all;
}

/// [head][layer]
std::vector<std::vector<double>> read_shares(const JsonCursor& heads, std::size_t layers, std::size_t tenth) {
  if (heads.array_size() != layers) heads.fail(std::to_string(layers) + " layers");
  std::vector<std::vector<double>> all;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::vector<double> shares = low_shares(heads.at(layer), tenth);
    if (layer == 0) all.resize(shares.size());
    if (shares.size() != all.size()) heads.at(layer).fail("as many heads as in the first layer");
    for (std::size_t head = 0; head < shares.size(); ++head) all[head].push_back(shares[head]);
  }
  return all;
}

/// Where the energy lies by layer and head.
std::vector<StateShares> read_all_shares(const JsonCursor& root, std::size_t tenth) {
  std::vector<StateShares> all;
  const std::size_t layers = root.at("layers").array_size();
  for (const StateWords& state : kStateWords) {
    if (!root.at("states").has(state.key)) continue;
    const JsonCursor tables = root.at("states").at(state.key).at("all_tokens");
    StateShares& one = all.emplace_back(StateShares{std::string(state.key), std::string(state.title),
                                                    read_shares(tables.at("with_dc").at("heads"), layers, tenth),
                                                    read_shares(tables.at("without_dc").at("heads"), layers, tenth)});
    if (!tables.has("chunk_share")) continue;  // of an older program
    const JsonCursor chunks = tables.at("chunk_share");
    expect_length(chunks, layers, "layers");
    for (std::size_t layer = 0; layer < layers; ++layer) {
      one.chunks.push_back(reals(chunks.at(layer)));
      expect_length(chunks.at(layer), one.chunks.front().size(), "chunks");
    }
  }
  return all;
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
    const JsonCursor root = output->root();
    const std::size_t tenth = tenth_of(root);
    const std::string& command = root.at("command").string();
    const auto layers = indices(root.at("layers"));
    if (layers.empty()) root.at("layers").fail("at least one layer");
    const std::string number = std::to_string(file);
    if (const auto power = read_power(root); !power.empty())
      section.body +=
          figure(page_drawings(power_chart("", layers, power, "frequency bin"), "power-" + number),
                 "Power along the token axis by layer, the first layer strongest: " + spectrum_extent(*output) + ", " +
                     (root.at("transform").string() == "dct" ? "DCT" : "DFT") +
                     ". Neighbouring bins are averaged over a twelfth of an octave; DC is left out.",
                 command);
    const auto shares = read_all_shares(root, tenth);
    if (std::ranges::any_of(shares, [](const StateShares& state) { return !state.chunks.empty(); }))
      section.body += figure(page_drawings(energy_chunks_chart("", layers, shares), "chunks-" + number),
                             "Share of each layer's energy in FAEDKV's chunks of the spectrum.", command);
    if (!shares.empty())
      section.body +=
          figure(page_drawings(energy_share_chart("", layers, shares), "share-" + number),
                 "Share of the energy in the lowest tenth of the frequencies, by layer and KV head.", command);
    add_spectra_findings(*output, tenth, section.findings);
    ++file;
  }
  return section;
}

}  // namespace kvs
