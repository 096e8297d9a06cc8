// SPDX-License-Identifier: Apache-2.0
#include "results/coding_gain.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

using Steps = CodingGainResult::Steps;

std::string digits(double value, const char* format = "%.2f") {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

double mean_of(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return mean;
}

/// Formats "0.08 bit of k_pre and 0.06 bit of v", or shares in percent.
std::string saved(const FamilyFinding& finding) {
  std::string text;
  for (const StateKind state : kStateKinds) {
    const std::optional<double>& value = finding.saves[state];
    if (!value) continue;
    if (!text.empty()) text += " and ";
    text += finding.family == MethodFamily::kLowRank ? digits(100 * *value, "%.0f") + " %" : digits(*value) + " bit";
    text += " of " + std::string(name_of(state));
  }
  return text;
}

/// Formats the means by block length: "0.01/0.02", or "-" without block lengths.
std::string block_means(const std::optional<std::vector<std::vector<double>>>& layers) {
  std::string text;
  for (std::size_t block = 0; layers && block < layers->front().size(); ++block) {
    std::vector<double> gains;
    for (const std::vector<double>& layer : *layers) gains.push_back(layer[block]);
    text += (text.empty() ? "" : "/") + digits(mean_of(gains));
  }
  return text.empty() ? "-" : text;
}

std::string mean_words(const std::vector<double>& gains) { return gains.empty() ? "-" : digits(mean_of(gains)); }

std::string table_row(const CodingGainResult::States& states, StateKind state) {
  const Steps& steps = states.states[state]->all.layers;
  const auto* const joint = state == StateKind::kKPost ? nullptr : &states.joint;
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "  %-8s %6.2f %9.2f %9.2f %10s %10s  %s\n",
                std::string(name_of(state)).c_str(), mean_of(steps.mean), mean_of(steps.channels), mean_of(steps.head),
                mean_words(gains_of(steps, GainStep::kLayer, joint)).c_str(),
                mean_words(gains_of(steps, GainStep::kJoint, joint)).c_str(), block_means(steps.tokens).c_str());
  return line.data();
}

/// Indices into the series colours: grey for the mean, then from cold to warm.
constexpr std::array<std::size_t, kGainSteps> kStepColours{7, 5, 0, 2, 1, 4};

draw::Panel stacked_panel(StateKind state, const CodingGainResult::States& states,
                          const std::vector<std::size_t>& layers) {
  draw::Panel panel{.key = std::string(name_of(state)),
                    .title = title_of(state),
                    .description = "Bits a real that each step of a transform coder saves, stacked, by layer.",
                    .x = {},
                    .y = {}};
  std::vector<double> sums(layers.size());
  for (std::size_t step = 0; step < kGainSteps; ++step) {
    const std::string name(words_of(static_cast<GainStep>(step)));
    const std::vector<double> gains =
        gains_of(states.states[state]->all.layers, static_cast<GainStep>(step), &states.joint);
    draw::Bars bars{name, draw::series_colour(kStepColours[step]), {}};
    for (std::size_t n = 0; n < gains.size(); ++n) {
      const double below = sums[n], at = static_cast<double>(n);
      sums[n] += gains[n];
      bars.bars.push_back(
          {at + 0.11, at + 0.89, below, sums[n],
           name + ", layer " + std::to_string(layers[n]) + ": " + draw::shown(gains[n], 2) + "\u00A0bits a real"});
    }
    panel.bars.push_back(std::move(bars));
  }
  panel.x.name = "layer";
  panel.x.names = draw::number_names(layers);
  panel.y = {
      .axis = draw::Axis::rounded(0, std::max(0.1, std::ranges::max(sums)), 6), .name = "bits a real saved", .most = 6};
  return panel;
}

}  // namespace

std::string_view words_of(GainStep step) noexcept {
  constexpr std::array<std::string_view, kGainSteps> kWords{"mean subtracted", "bits by channel", "KLT of a head",
                                                            "KLT of a layer",  "keys and values", "DCT along tokens"};
  return kWords[static_cast<std::size_t>(step)];
}

std::vector<double> gains_of(const Steps& layers, GainStep step, const std::vector<std::optional<double>>* joint) {
  if (step == GainStep::kMean) return layers.mean;
  if (step == GainStep::kChannels) return layers.channels;
  if (step == GainStep::kHead) return layers.head;
  std::vector<double> gains;
  if (step == GainStep::kTokens) {
    for (const auto& blocks : layers.tokens.value_or(std::vector<std::vector<double>>()))
      gains.push_back(blocks.empty() ? 0 : blocks.back());
    return gains;
  }
  const auto* const whole = step == GainStep::kJoint ? joint : layers.layer ? &*layers.layer : nullptr;
  if (whole == nullptr || std::ranges::count(*whole, std::optional<double>()) > 0) return {};
  for (const auto& gain : *whole) gains.push_back(*gain);
  return gains;
}

std::string family_words(const FamilyFinding& finding, std::size_t block, double rate) {
  const std::string verdict(json_names(FamilyVerdict{})[static_cast<std::size_t>(finding.verdict)]),
      bits = saved(finding);
  switch (finding.family) {
    case MethodFamily::kMean:
      return "Subtracting each channel's mean " + verdict + ": it saves " + bits + ".";
    case MethodFamily::kTokens:
      return "Dropping frequencies along tokens " + verdict + ": without the means a DCT of " + std::to_string(block) +
             " tokens saves " + bits + ".";
    case MethodFamily::kChannels:
      return "Other bits for other channels " + verdict + ": they save " + bits + ".";
    case MethodFamily::kTransform:
      return "A transform across channels " + verdict + ": a KLT saves " + bits + ".";
    case MethodFamily::kLowRank:
      return "Low rank " + verdict + ": at " + digits(rate, "%g") + " bits a real no bits go to " + bits +
             ", in components of the KLT of a head.";
    case MethodFamily::kJoint:
      return "Coding keys and values together " + verdict + ": it saves " +
             digits(finding.saves[StateKind::kV].value_or(0)) + " bit of both.";
    case MethodFamily::kPlain:
      return "Plain quantisation " + verdict + " alone: it leaves " + bits + ".";
  }
  return {};
}

std::string to_text(const CodingGainResult& result) {
  std::string text;
  if (result.measured) {
    text = "coding gain, bits a real (means over layers), from " + std::to_string(result.tokens) + " tokens\n" +
           "             mean  channels  KLT head  KLT layer  KLT joint  DCT of tokens (";
    const char* separator = "";
    for (const std::size_t block : result.measured->block_tokens)
      text += std::exchange(separator, "/") + std::to_string(block);
    text += ")\n";
    for (const StateKind state : kStateKinds)
      if (result.measured->mean_removed.states[state]) text += table_row(result.measured->mean_removed, state);
    for (const FamilyFinding& finding : result.measured->families) text += "  " + finding.words + "\n";
  }
  for (const std::string& missing : result.left_out) text += "  left out: " + missing + "\n";
  return text;
}

draw::Chart coding_gain_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                              const CodingGainResult& result) {
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = std::clamp(18.0 * static_cast<double>(layers.size()), 480.0, 900.0),
                    .plot_height = 170};
  for (const StateKind state : {StateKind::kKPre, StateKind::kV})
    if (result.measured->mean_removed.states[state])
      chart.panels.push_back(stacked_panel(state, result.measured->mean_removed, layers));
  draw::arrange(chart, 1);
  return chart;
}

}  // namespace kvs::inline results
