#include "analyzers/spectrum_report.h"

#include <algorithm>
#include <utility>

#include "analyzers/coding_gain_report.h"
#include "analyzers/spectrum_charts.h"
#include "analyzers/spectrum_summary.h"
#include "draw/figure.h"
#include "io/hdf5/array_file.h"
#include "io/output_set.h"

namespace kvs {
namespace {

constexpr double kSharePercent = 10;  // of the bins, in the map of energy shares
constexpr std::size_t kBandsPerOctave = 12;

std::string_view name_of(Transform transform) noexcept { return transform == Transform::kDct ? "dct" : "dft"; }

/// Summaries as one list per quantity.
class SummaryColumns {
 public:
  void add(const SpectrumSummary& summary) {
    energy_.push_back(summary.energy);
    low_share_.push_back(summary.low_share);
    bins_for_energy_.push_back(summary.bins_for_energy);
    flatness_.push_back(summary.flatness);
  }
  Json json() const {
    return {
        {"energy", energy_}, {"low_share", low_share_}, {"bins_for_energy", bins_for_energy_}, {"flatness", flatness_}};
  }

 private:
  Json energy_ = Json::array(), low_share_ = Json::array(), bins_for_energy_ = Json::array(), flatness_ = Json::array();
};

Json table_json(const PowerTable& table, Transform transform, std::size_t samples, bool with_dc) {
  SummaryColumns layers;
  Json heads = Json::array();
  for (std::size_t layer = 0; layer < table.layers; ++layer) {
    layers.add(summarise_power(table.layer_mean(layer), transform, samples, with_dc));
    SummaryColumns columns;
    for (std::size_t head = 0; head < table.heads; ++head) {
      columns.add(summarise_power(table.row(layer, head), transform, samples, with_dc));
    }
    heads.push_back(columns.json());
  }
  return {{"bins", with_dc ? table.bins : table.bins - 1}, {"layers", layers.json()}, {"heads", heads}};
}

Json chunk_shares_json(const PowerTable& table, Transform transform, std::size_t samples) {
  Json layers = Json::array();
  for (std::size_t layer = 0; layer < table.layers; ++layer)
    layers.push_back(chunk_shares(table.layer_mean(layer), transform, samples));
  return layers;
}

Json constant_channels_json(const Spectrum& spectrum) {
  Json list = Json::array();
  for (const ConstantChannel& constant : spectrum.constant_channels) {
    list.push_back({{"state", name_of(constant.state)},
                    {"layer", constant.layer},
                    {"head", constant.head},
                    {"channel", constant.channel}});
  }
  return list;
}

/// One curve per layer over a logarithmic frequency axis, without DC.
Json curve_json(const PowerTable& table) {
  Json bins = Json::array(), power = Json::array();
  for (std::size_t layer = 0; layer < table.layers; ++layer) {
    Json& row = power.emplace_back(Json::array());
    for (const Band& band : log_bands(table.layer_mean(layer), kBandsPerOctave)) {
      row.push_back(band.power);
      if (layer == 0) bins.push_back(band.bin);
    }
  }
  return {{"bins", bins}, {"power", power}};
}

bool has_both_keys(const StateSet& states) {
  return states.contains(StateKind::kKPre) && states.contains(StateKind::kKPost);
}

std::string page_name(std::size_t page, std::size_t pages) {
  return pages == 1 ? "spectrum_heads" : "spectrum_heads_" + std::to_string(page + 1);
}

std::vector<std::pair<std::string, draw::Chart>> charts_of(const Spectrum& spectrum, std::string_view model_name,
                                                           const ModelGains* gains) {
  const SpectrumView all{spectrum, model_name, true};
  std::vector<std::pair<std::string, draw::Chart>> charts;
  charts.emplace_back("spectrum_layers", spectrum_layers_chart(all));
  if (spectrum.sinks > 0)
    charts.emplace_back("spectrum_layers_without_sinks", spectrum_layers_chart({spectrum, model_name, false}));
  std::vector<draw::Chart> pages = spectrum_heads_charts(all);
  for (std::size_t page = 0; page < pages.size(); ++page)
    charts.emplace_back(page_name(page, pages.size()), std::move(pages[page]));
  if (has_both_keys(spectrum.states)) charts.emplace_back("spectrum_k_pre_vs_k_post", spectrum_rope_chart(all));
  charts.emplace_back("energy_share", spectrum_share_chart(all, kSharePercent));
  charts.emplace_back("energy_chunks", spectrum_chunks_chart(all));
  if (gains != nullptr && has_whole_gains(gains->shape, gains->tokens))
    charts.emplace_back("coding_gain", model_gain_chart(*gains, spectrum.layers, model_name));
  return charts;
}

std::string tables_of(const Spectrum& spectrum) {
  std::vector<std::vector<float>> values;  // owns what the arrays show
  std::vector<NamedArray> arrays;
  values.reserve(2 * spectrum.states.size());
  for (const bool with_sinks : {true, false}) {
    for (const StateKind state : spectrum.states) {
      const PowerTable& table = spectrum.table(state, with_sinks);
      const std::vector<float>& rounded = values.emplace_back(table.values.begin(), table.values.end());
      arrays.push_back({.path = (with_sinks ? "/power/" : "/power_without_sinks/") + std::string(name_of(state)),
                        .shape = {table.layers, table.heads, table.bins},
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

Json spectrum_json(const Spectrum& spectrum, const SpectrumOrigin& origin, const ModelGains* gains) {
  Json json{{"format", "kvspectrum-spectrum"}, {"version", 1},
            {"model", origin.model},           {"transform", name_of(spectrum.transform)},
            {"tokens", spectrum.tokens},       {"sinks", spectrum.sinks},
            {"documents", spectrum.documents}, {"layers", spectrum.layers},
            {"low_percents", kLowPercents},    {"energy_share", kEnergyShare}};
  for (const auto& [key, value] : origin.source.items()) json[key] = value;
  Json& states = json["states"] = Json::object();
  for (const StateKind state : spectrum.states) {
    Json& of_state = states[std::string(name_of(state))] = Json::object();
    for (const bool with_sinks : {true, false}) {
      const std::size_t samples = spectrum.tokens - (with_sinks ? 0 : spectrum.sinks);
      const PowerTable& table = spectrum.table(state, with_sinks);
      of_state[with_sinks ? "all_tokens" : "without_sinks"] = {
          {"with_dc", table_json(table, spectrum.transform, samples, true)},
          {"without_dc", table_json(table, spectrum.transform, samples, false)},
          {"chunk_share", chunk_shares_json(table, spectrum.transform, samples)},
          {"curve", curve_json(table)}};
    }
  }
  json["constant_channels"] = constant_channels_json(spectrum);
  if (gains != nullptr) json["coding_gain"] = coding_gain_json(*gains);
  return json;
}

std::vector<std::string> spectrum_report_files(const SpectrumAccumulator::Settings& settings, bool gains) {
  std::vector<std::string> stems{"spectrum_layers", "energy_share", "energy_chunks"};
  if (settings.sinks > 0) stems.emplace_back("spectrum_layers_without_sinks");
  const std::size_t pages = spectrum_heads_pages(settings.layers.size(), settings.kv_heads);
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
                                  const SpectrumOrigin& origin, bool force, const ModelGains* gains) {
  const std::string json = dump_json(spectrum_json(spectrum, origin, gains)) + "\n";
  OutputSet outputs;
  draw::Figures figures(outputs);
  outputs.add(directory / "spectrum.h5", tables_of(spectrum));
  for (const auto& [stem, chart] : charts_of(spectrum, origin.model_name, gains)) figures.add(directory / stem, chart);
  outputs.add(directory / "spectrum.json", json);
  outputs.commit(force);
  return figures.note();
}

}  // namespace kvs
