#include "analyzers/perturbation_report.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "analyzers/spectrum_charts.h"
#include "eval/paired_difference.h"
#include "io/record.h"
#include "results/similarity_chart.h"

namespace kvs {
namespace {

SimilarityCurve curve_of(std::span<const PerturbedDocument* const> documents, StateKind state, std::size_t band) {
  constexpr double kConfidence = 0.95;
  SimilarityCurve curve;
  for (std::size_t layer = 0; layer < documents.front()->layers.size(); ++layer) {
    std::vector<double> values;
    for (const PerturbedDocument* document : documents) values.push_back(document->layers[layer][state][band]);
    const auto [mean, error] = paired_mean(values);
    curve.mean.push_back(mean);
    auto& interval = curve.interval.emplace_back();
    if (values.size() < 2) continue;
    const double width = half_width(values.size(), kConfidence) * error;
    interval = {mean - width, mean + width};
  }
  return curve;
}

Json interval_json(const SimilarityCurve& curve) {
  Json list = Json::array();
  for (const auto& interval : curve.interval)
    list.push_back(interval ? Json{interval->first, interval->second} : Json());
  return list;
}

std::size_t count_of(std::span<const PerturbedDocument> documents, bool same_count) {
  return static_cast<std::size_t>(std::ranges::count(documents, same_count, &PerturbedDocument::same_count));
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

constexpr std::array kGroups{std::pair{"same_count", true}, std::pair{"other_count", false}};

}  // namespace

std::optional<SimilarityCurves> similarity_curves(std::span<const PerturbedDocument> documents, bool same_count) {
  std::vector<const PerturbedDocument*> group;
  for (const PerturbedDocument& document : documents)
    if (document.same_count == same_count) group.push_back(&document);
  if (group.empty()) return std::nullopt;
  SimilarityCurves curves;
  for (const StateKind state : kPerturbedStates)
    for (std::size_t band = 0; band < kBinBands.size(); ++band) curves[state][band] = curve_of(group, state, band);
  return curves;
}

Json perturbation_json(std::span<const PerturbedDocument> documents) {
  std::vector<double> replaced;
  for (const PerturbedDocument& document : documents) replaced.push_back(static_cast<double>(document.replaced));
  Json states = Json::object(), counts = Json::object();
  for (const auto& [name, same_count] : kGroups) {
    counts[name] = count_of(documents, same_count);
    const auto curves = similarity_curves(documents, same_count);
    if (!curves) continue;
    for (const StateKind state : kPerturbedStates)
      for (std::size_t band = 0; band < kBinBands.size(); ++band) {
        const SimilarityCurve& curve = (*curves)[state][band];
        states[std::string(name_of(state))][name][std::string(kBinBandNames[band])] = {
            {"mean", curve.mean}, {"interval", interval_json(curve)}};
      }
  }
  return {{"documents", counts}, {"replaced_words", mean_of(replaced)}, {"states", states}};
}

draw::Chart perturbation_chart(const std::string& heading, std::span<const std::size_t> layers,
                               std::span<const PerturbedDocument> documents) {
  constexpr std::array kBandWords{"lower half", "lower without DC", "upper half"};
  std::vector<SimilarityPanel> panels;
  std::size_t row = 0;
  for (const bool same_count : {true, false}) {
    const auto curves = similarity_curves(documents, same_count);
    if (!curves) continue;
    for (const StateKind state : kPerturbedStates) {
      SimilarityPanel& panel = panels.emplace_back();
      panel.key = std::string(name_of(state)) + (same_count ? "-same_count" : "-other_count");
      panel.title = title_of(state) + (same_count ? ", tokens in place" : ", tokens moved");
      panel.group = row;
      for (std::size_t band = 0; band < kBandWords.size(); ++band)
        panel.curves.push_back({kBandWords[band], (*curves)[state][band].mean, (*curves)[state][band].interval});
    }
    ++row;
  }
  return similarity_chart(heading, {layers.begin(), layers.end()}, panels, kPerturbedStates.size());
}

std::string perturbation_summary(std::span<const PerturbedDocument> documents) {
  std::ostringstream text;
  text.precision(5);
  for (const auto& [name, same_count] : kGroups) {
    const auto curves = similarity_curves(documents, same_count);
    if (!curves) continue;
    text << count_of(documents, same_count) << " documents whose tokens "
         << (same_count ? "stay where they were" : "move") << " (means over layers)\n";
    for (const StateKind state : kPerturbedStates) {
      const auto mean = [&](BinBand band) { return mean_of((*curves)[state][static_cast<std::size_t>(band)].mean); };
      text << "  " << name_of(state) << ": similarity " << mean(BinBand::kLow) << " in the lower half of the bins ("
           << mean(BinBand::kLowWithoutDc) << " without DC), " << mean(BinBand::kHigh) << " in the upper\n";
    }
  }
  return text.str();
}

Json perturbed_document_json(const PerturbedDocument& document) {
  Json record{{"replaced", document.replaced}, {"same_count", document.same_count}};
  for (const StateKind state : kPerturbedStates) {
    Json& layers = record["layers"][std::string(name_of(state))] = Json::array();
    for (const auto& layer : document.layers) layers.push_back(layer[state]);
  }
  return record;
}

PerturbedDocument perturbed_document_from(const JsonCursor& record, const PerturbedDocument& planned,
                                          std::size_t layers) {
  require_record(record.at("replaced"), planned.replaced);
  require_record(record.at("same_count"), planned.same_count);
  PerturbedDocument document{planned.replaced, planned.same_count, std::vector<ByState<BandSimilarity>>(layers)};
  for (const StateKind state : kPerturbedStates) {
    const JsonCursor of_state = record.at("layers").at(name_of(state));
    if (of_state.array_size() != layers) of_state.fail(std::to_string(layers) + " layers");
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const std::vector<double> bands = record_reals(of_state.at(layer), kBinBands.size());
      std::ranges::copy(bands, document.layers[layer][state].begin());
    }
  }
  return document;
}

}  // namespace kvs
