#include <algorithm>
#include <array>

#include "calibrate/config/config_lists.h"
#include "export/report/lines.h"
#include "export/report/markers.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

struct Named {
  std::string_view key, words;
};
constexpr std::array kTextStates{Named{"k_pre", "keys before RoPE"}, Named{"v", "values"}};
constexpr std::array kTextGroups{Named{"same_count", "tokens stay"}, Named{"other_count", "tokens move"}};
constexpr std::array kHalves{Named{"low", "lower half"}, Named{"low_without_dc", "lower half without DC"},
                             Named{"high", "upper half"}};

std::vector<std::string> half_names() {
  std::vector<std::string> names;
  for (const Named& band : kHalves) names.emplace_back(band.words);
  return names;
}

Lines::Line half_line(const JsonCursor& curve, const std::string& name, const std::vector<std::size_t>& layers) {
  const JsonCursor mean = curve.at("mean"), interval = curve.at("interval");
  for (const JsonCursor& list : {mean, interval}) expect_length(list, layers.size(), "layers");
  Lines::Line line{name, {}};
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const auto range = range_of(interval.at(n));
    line.points.push_back(
        {static_cast<double>(layers[n]), mean.at(n).real(), range,
         "layer " + std::to_string(layers[n]) + ": " + shown(mean.at(n).real()) + interval_note(range)});
  }
  return line;
}

/// From a round number below all means to 1; intervals that go beyond are cut.
Axis similarity_axis(const std::vector<Lines::Line>& lines) {
  double least = 1;
  for (const Lines::Line& line : lines)
    for (const Lines::Point& point : line.points) least = std::min(least, point.y);
  return Axis::rounded(least, 1, 5);
}

Markup similarity_drawing(const JsonCursor& bands, const std::string& id, const std::string& state,
                          const std::string& group, const std::vector<std::size_t>& layers) {
  std::vector<Lines::Line> lines;
  for (const Named& band : kHalves) lines.push_back(half_line(bands.at(band.key), std::string(band.words), layers));
  return draw_lines({.words = {id, capitalised(state) + ", " + group,
                               "Cosine similarity of " + state +
                                   " of a text and its copy with synonyms, by layer and "
                                   "half of the frequencies, where " +
                                   group + "."},
                     .x = layer_axis(layers),
                     .y = similarity_axis(lines),
                     .x_name = "layer",
                     .y_name = "similarity",
                     .x_ticks = layer_ticks(layers),
                     .lines = lines});
}

/// Means over layers, in the order of kHalves.
std::array<double, 3> means_of(const JsonCursor& bands) {
  std::array<double, 3> means{};
  for (std::size_t n = 0; n < kHalves.size(); ++n) means[n] = mean_of(reals(bands.at(kHalves[n].key).at("mean")));
  return means;
}

std::string group_finding(const JsonCursor& root, const Named& group, std::size_t documents) {
  std::string words = "Where " + std::string(group.words) + " (" + counted(documents, "document") +
                      "), the similarity of a text and its copy with " + shown_percent(root.at("share").real()) +
                      " of its words replaced by synonyms is";
  for (const Named& state : kTextStates) {
    const auto means = means_of(root.at("states").at(state.key).at(group.key));
    words += (&state == kTextStates.begin() ? " " : "; ") + shown(means[0]) +
             " in the lower half of the frequencies of " + std::string(state.words) + ", " + shown(means[1]) +
             " there without DC, " + shown(means[2]) + " in the upper half";
  }
  return words + ".";
}

}  // namespace

Section perturbation_section(const ReportInputs& inputs) {
  Section section{"perturbation", "Texts with synonyms", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kPerturbation)) {
    const JsonCursor root = output->root(), states = root.at("states");
    const auto layers = indices(root.at("layers"));
    if (layers.empty()) root.at("layers").fail("at least one layer");
    Table table("Cosine similarity, means over layers", {{"States", false},
                                                         {"Tokens", false},
                                                         {"Documents"},
                                                         {"Lower half"},
                                                         {"Without DC", true, "the lower half but the mean"},
                                                         {"Upper half"}});
    Markup drawings;
    for (const Named& group : kTextGroups) {
      const auto documents = root.at("documents").at(group.key).unsigned_integer(1 << 24);
      if (documents == 0) continue;
      for (const Named& state : kTextStates) {
        const JsonCursor bands = states.at(state.key).at(group.key);
        const auto means = means_of(bands);
        table.row({std::string(state.words),
                   std::string(group.words),
                   {shown_count(documents), static_cast<double>(documents)},
                   {shown(means[0]), means[0]},
                   {shown(means[1]), means[1]},
                   {shown(means[2]), means[2]}});
        drawings += similarity_drawing(
            bands, "synonyms-" + std::to_string(file) + "-" + std::string(state.key) + "-" + std::string(group.key),
            std::string(state.words), std::string(group.words), layers);
      }
      section.findings.push_back(group_finding(root, group, documents));
    }
    section.body +=
        figure(drawings + legend(half_names()),
               "Cosine similarity of the spectra of a text and of its copy with synonyms, by layer, on documents of " +
                   shown_count(root.at("tokens").unsigned_integer(1 << 24)) +
                   " tokens. Tokens move where a synonym has another number of them; intervals are of 95 %.",
               root.at("command").string()) +
        table.markup();
    ++file;
  }
  return section;
}

}  // namespace kvs
