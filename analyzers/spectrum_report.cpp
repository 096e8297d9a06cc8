// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analyzers/coding_gain_result.h"
#include "analyzers/spectrum_charts.h"
#include "analyzers/spectrum_summary.h"
#include "draw/figure.h"
#include "io/hdf5/array_file.h"
#include "io/output_set.h"
#include "results/spectrum_charts.h"

namespace kvs::inline analyzers {
namespace {

constexpr std::size_t kBandsPerOctave = 12;

std::string_view name_of(Transform transform) noexcept { return transform == Transform::kDct ? "dct" : "dft"; }

void add(SpectrumResult::Summaries& columns, const SpectrumSummary& summary) {
  columns.energy.push_back(summary.energy);
  columns.low_share.emplace_back(summary.low_share.begin(), summary.low_share.end());
  columns.bins_for_energy.push_back(summary.bins_for_energy);
  columns.flatness.push_back(summary.flatness);
}

SpectrumResult::Table table_of(const PowerTable& table, Transform transform, std::size_t samples, bool with_dc) {
  SpectrumResult::Table result{.bins = with_dc ? table.bins : table.bins - 1};
  for (std::size_t layer = 0; layer < table.layers; ++layer) {
    add(result.layers, summarise_power(table.layer_mean(layer), transform, samples, with_dc));
    auto& heads = result.heads.emplace_back();
    for (std::size_t head = 0; head < table.heads[layer]; ++head)
      add(heads, summarise_power(table.row(layer, head), transform, samples, with_dc));
  }
  return result;
}

SpectrumResult::Tokens tokens_of(const PowerTable& table, Transform transform, std::size_t samples) {
  SpectrumResult::Tokens result{table_of(table, transform, samples, true), table_of(table, transform, samples, false)};
  result.chunk_share.emplace();
  result.curve = SpectrumResult::Curve{};
  for (std::size_t layer = 0; layer < table.layers; ++layer) {
    const std::vector<double> mean = table.layer_mean(layer);
    result.chunk_share->push_back(chunk_shares(mean, transform, samples));
    auto& curve = result.curve->power.emplace_back();
    for (const Band& band : log_bands(mean, kBandsPerOctave)) {
      curve.push_back(band.power);
      if (layer == 0) result.curve->bins.push_back(band.bin);
    }
  }
  return result;
}

bool has_both_keys(const StateSet& states) {
  return states.contains(StateKind::kKPre) && states.contains(StateKind::kKPost);
}

std::string page_name(std::size_t page, std::size_t pages) {
  return pages == 1 ? "spectrum_heads" : "spectrum_heads_" + std::to_string(page + 1);
}

std::vector<std::pair<std::string, draw::Chart>> charts_of(const Spectrum& spectrum, const SpectrumResult& result) {
  const std::string& model = result.model.name;
  const SpectrumView all{spectrum, model, true};
  std::vector<std::pair<std::string, draw::Chart>> charts;
  charts.emplace_back("spectrum_layers", spectrum_layers_chart(all));
  if (spectrum.sinks > 0)
    charts.emplace_back("spectrum_layers_without_sinks", spectrum_layers_chart({spectrum, model, false}));
  std::vector<draw::Chart> pages = spectrum_heads_charts(all);
  for (std::size_t page = 0; page < pages.size(); ++page)
    charts.emplace_back(page_name(page, pages.size()), std::move(pages[page]));
  if (has_both_keys(spectrum.states)) charts.emplace_back("spectrum_k_pre_vs_k_post", spectrum_rope_chart(all));
  charts.emplace_back("energy_share",
                      energy_share_chart("Energy in the lowest 10 % of bins: " + subject_of(all), result));
  charts.emplace_back("energy_chunks", energy_chunks_chart("Energy by chunk: " + subject_of(all), result));
  const auto& gain = result.coding_gain;
  if (gain && gain->measured && (spectrum.states.contains(StateKind::kKPre) || spectrum.states.contains(StateKind::kV)))
    charts.emplace_back("coding_gain",
                        coding_gain_chart("Coding gain: " + model + " · " + std::to_string(gain->tokens) + " tokens",
                                          spectrum.layers, *gain));
  return charts;
}

/// Returns [layer, head, bin]. A layer with fewer heads than another has NaN in their place.
std::vector<float> padded_rows(const PowerTable& table) {
  const std::size_t heads = table.most_heads();
  std::vector<float> values(table.layers * heads * table.bins, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t layer = 0; layer < table.layers; ++layer)
    for (std::size_t head = 0; head < table.heads[layer]; ++head)
      std::ranges::copy(table.row(layer, head),
                        values.begin() + static_cast<std::ptrdiff_t>((layer * heads + head) * table.bins));
  return values;
}

std::string tables_of(const Spectrum& spectrum) {
  std::vector<std::vector<float>> values;  // owns the data of `arrays`
  std::vector<NamedArray> arrays;
  values.reserve(2 * spectrum.states.size());
  for (const bool with_sinks : {true, false}) {
    for (const StateKind state : spectrum.states) {
      const PowerTable& table = spectrum.table(state, with_sinks);
      const std::vector<float>& rounded = values.emplace_back(padded_rows(table));
      arrays.push_back({.path = (with_sinks ? "/power/" : "/power_without_sinks/") + std::string(name_of(state)),
                        .shape = {table.layers, table.most_heads(), table.bins},
                        .values = std::span<const float>(rounded),
                        .attributes = {{"axes", "layer, kv_head, bin"}}});
    }
  }
  return array_file_bytes(arrays, {{"format", "kvspectrum-spectrum"},
                                   {"version", "1"},
                                   {"transform", std::string(name_of(spectrum.transform))},
                                   {"tokens", std::to_string(spectrum.tokens)},
                                   {"sinks", std::to_string(spectrum.sinks)},
                                   {"documents", std::to_string(spectrum.documents)}});
}

}  // namespace

SpectrumResult spectrum_result(SpectrumResult result, const Spectrum& spectrum, const ModelGains* gains) {
  result.transform = name_of(spectrum.transform);
  result.tokens = spectrum.tokens;
  result.sinks = spectrum.sinks;
  result.documents = spectrum.documents;
  result.layers = spectrum.layers;
  result.low_percents = {kLowPercents.begin(), kLowPercents.end()};
  result.energy_share = kEnergyShare;
  for (const StateKind state : spectrum.states)
    result.states[state] = SpectrumResult::State{
        tokens_of(spectrum.table(state, true), spectrum.transform, spectrum.tokens),
        tokens_of(spectrum.table(state, false), spectrum.transform, spectrum.tokens - spectrum.sinks)};
  for (const auto& [state, layer, head, channel] : spectrum.constant_channels)
    result.constant_channels.push_back({std::string(name_of(state)), layer, head, channel});
  if (gains != nullptr) result.coding_gain = coding_gain_result(*gains);
  return result;
}

std::vector<std::string> spectrum_report_files(const SpectrumAccumulator::Settings& settings, bool gains) {
  std::vector<std::string> stems{"spectrum_layers", "energy_share", "energy_chunks"};
  if (settings.sinks > 0) stems.emplace_back("spectrum_layers_without_sinks");
  const std::size_t pages = spectrum_heads_pages(settings.layers.size(), std::ranges::max(settings.heads_by_layer()));
  for (std::size_t page = 0; page < pages; ++page) stems.push_back(page_name(page, pages));
  if (has_both_keys(settings.states)) {
    stems.emplace_back("spectrum_k_pre_vs_k_post");
  }
  if (gains) stems.emplace_back("coding_gain");
  std::vector<std::string> files{"spectrum.h5", "spectrum.json"};
  for (const std::string& stem : stems) {
    files.push_back(stem + ".svg");
    files.push_back(stem + ".png");
  }
  return files;
}

std::string write_spectrum_report(const std::filesystem::path& directory, const Spectrum& spectrum,
                                  const SpectrumResult& result, bool force) {
  const std::string json = dump_json(to_json(result)) + "\n";
  OutputSet outputs;
  draw::Figures figures(outputs);
  outputs.add(directory / "spectrum.h5", tables_of(spectrum));
  for (const auto& [stem, chart] : charts_of(spectrum, result)) figures.add(directory / stem, chart);
  outputs.add(directory / "spectrum.json", json);
  outputs.commit(force);
  return figures.note();
}

}  // namespace kvs::inline analyzers
