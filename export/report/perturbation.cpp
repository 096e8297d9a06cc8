#include <array>

#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/similarity_chart.h"

namespace kvs {
namespace {

struct Named {
  std::string_view key, words;
};
constexpr std::array kTextStates{Named{"k_pre", "keys before RoPE"}, Named{"v", "values"}};
constexpr std::array kTextGroups{Named{"same_count", "tokens stay"}, Named{"other_count", "tokens move"}};
constexpr std::array kHalves{Named{"low", "lower half"}, Named{"low_without_dc", "lower half without DC"},
                             Named{"high", "upper half"}};

SimilarityPanel::Curve half_curve(const JsonCursor& curve, const std::string& name, std::size_t layers) {
  const JsonCursor mean = curve.at("mean"), interval = curve.at("interval");
  for (const JsonCursor& list : {mean, interval}) expect_length(list, layers, "layers");
  SimilarityPanel::Curve half{name, reals(mean), {}};
  for (std::size_t n = 0; n < layers; ++n) half.interval.push_back(range_of(interval.at(n)));
  return half;
}

SimilarityPanel similarity_panel(const JsonCursor& bands, const Named& state, const Named& group, std::size_t row,
                                 std::size_t layers) {
  SimilarityPanel panel{std::string(state.key) + "-" + std::string(group.key),
                        capitalised(std::string(state.words)) + ", " + std::string(group.words),
                        row,
                        {}};
  for (const Named& band : kHalves)
    panel.curves.push_back(half_curve(bands.at(band.key), std::string(band.words), layers));
  return panel;
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
    std::vector<SimilarityPanel> panels;
    std::size_t row = 0;
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
        panels.push_back(similarity_panel(bands, state, group, row, layers.size()));
      }
      section.findings.push_back(group_finding(root, group, documents));
      ++row;
    }
    if (panels.empty()) continue;
    const draw::Chart chart = similarity_chart("", layers, panels, kTextStates.size());
    section.body +=
        figure(page_drawings(chart, "synonyms-" + std::to_string(file)) + page_legend(chart),
               "Cosine similarity of the spectra of a text and of its copy with synonyms, by layer, on documents of " +
                   shown_count(root.at("tokens").unsigned_integer(1 << 24)) +
                   " tokens. Tokens move where a synonym has another number of them; bands are intervals of 95 %.",
               root.at("command").string()) +
        table.markup();
    ++file;
  }
  return section;
}

}  // namespace kvs
