#include <array>

#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/spectrum_charts.h"

namespace kvs {
namespace {

struct GainWords {
  std::string_view key, words;
};
constexpr std::array kGainStates{GainWords{"k_pre", "keys before RoPE"}, GainWords{"v", "values"}};
constexpr std::array kGainSteps{GainWords{"mean", "mean subtracted"},  GainWords{"channels", "bits by channel"},
                                GainWords{"head", "KLT of a head"},    GainWords{"layer", "KLT of a layer"},
                                GainWords{"joint", "keys and values"}, GainWords{"tokens", "DCT along tokens"}};

/// Bits a real by layer; nothing of a step that was not measured.
using StepGain = std::vector<double>;

StepGain gains_of(const JsonCursor& list, std::size_t layers) {
  expect_length(list, layers, "layers");
  StepGain gains;
  for (std::size_t n = 0; n < layers; ++n) {
    if (list.at(n).value().is_null()) return {};
    gains.push_back(list.at(n).real());
  }
  return gains;
}

/// In the order of kGainSteps. @param joint  of both states
std::vector<StepGain> steps_of(const JsonCursor& layers, const JsonCursor* joint, std::size_t count) {
  std::vector<StepGain> steps;
  for (const GainWords& step : kGainSteps) {
    StepGain& gains = steps.emplace_back();
    if (step.key == "joint") {
      if (joint != nullptr) gains = gains_of(*joint, count);
    } else if (step.key == "tokens" && layers.has(step.key)) {
      const JsonCursor blocks = layers.at(step.key);
      expect_length(blocks, count, "layers");
      for (std::size_t n = 0; n < count; ++n) {
        const std::vector<double> of_layer = reals(blocks.at(n));
        gains.push_back(of_layer.empty() ? 0 : of_layer.back());
      }
    } else if (layers.has(step.key)) {
      gains = gains_of(layers.at(step.key), count);
    }
  }
  return steps;
}

void add_row(Table& table, const std::string& state, const std::string& variant, const std::vector<StepGain>& steps) {
  std::vector<Cell> row{state, variant};
  for (const StepGain& step : steps)
    row.push_back(step.empty() ? Cell::missing() : Cell(shown(mean_of(step), 2), mean_of(step)));
  table.row(row);
}

std::vector<std::string> step_names() {
  std::vector<std::string> names;
  for (const GainWords& step : kGainSteps) names.emplace_back(step.words);
  return names;
}

Table gain_table() {
  return {"Coding gain: bits a real that each step saves, means over layers",
          {{"States", false},
           {"Errors count", false},
           {"Mean", true, "each channel's mean subtracted"},
           {"Channels", true, "bits by channel"},
           {"KLT of a head"},
           {"KLT of a layer", true, "beyond those of its heads"},
           {"Keys and values", true, "one KLT of both, beyond those"},
           {"Along tokens", true, "DCT of the longest blocks, beyond the KLT of a head"}}};
}

}  // namespace

Section coding_gain_section(const ReportInputs& inputs) {
  Section section{"coding-gain", "Coding gain", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kSpectrum)) {
    const JsonCursor root = output->root();
    if (!root.has("coding_gain") || !root.at("coding_gain").has("mean_removed")) continue;
    const JsonCursor gain = root.at("coding_gain");
    const auto layers = indices(root.at("layers"));
    if (layers.empty()) root.at("layers").fail("at least one layer");
    Table table = gain_table();
    std::vector<StateGainSteps> states;
    for (const GainWords& state : kGainStates) {
      for (const auto& [variant, words] :
           {GainWords{"mean_removed", "alike"}, GainWords{"mean_kept", "alike, mean kept"}}) {
        if (!gain.has(variant) || !gain.at(variant).has(state.key)) continue;
        const JsonCursor of_state = gain.at(variant).at(state.key), joint = gain.at(variant).at("joint");
        const auto steps = steps_of(of_state.at("layers"), &joint, layers.size());
        add_row(table, std::string(state.words), std::string(words), steps);
        if (variant != "mean_removed") continue;
        states.push_back({std::string(state.key), capitalised(std::string(state.words)), steps});
        if (of_state.has("weighted"))
          add_row(table, std::string(state.words), "by what they cost the output",
                  steps_of(of_state.at("weighted").at("layers"), nullptr, layers.size()));
      }
    }
    if (table.empty()) continue;
    const draw::Chart chart = coding_gain_chart("", layers, step_names(), states);
    section.body +=
        figure(page_drawings(chart, "gain-" + std::to_string(file)) + page_legend(chart),
               "What each step of a transform coder saves at equal distortion, in bits a real, stacked, by layer.",
               root.at("command").string()) +
        table.markup();
    const JsonCursor families = gain.at("families");
    for (std::size_t n = 0; n < families.array_size(); ++n)
      section.findings.push_back(families.at(n).at("words").string());
    ++file;
  }
  return section;
}

}  // namespace kvs
