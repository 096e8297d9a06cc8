// SPDX-License-Identifier: Apache-2.0
#include "analyzers/perturbed_documents.h"

#include <algorithm>

#include "core/error.h"
#include "eval/paired_difference.h"
#include "io/record.h"
#include "turns/turns.h"

namespace kvs::inline analyzers {
namespace {

SimilarityCurve curve_of(std::span<const PerturbedDocument* const> documents, StateKind state, BinBand band) {
  constexpr double kConfidence = 0.95;
  SimilarityCurve curve;
  for (std::size_t layer = 0; layer < documents.front()->layers.size(); ++layer) {
    std::vector<double> values;
    for (const PerturbedDocument* document : documents)
      values.push_back(document->layers[layer][state][static_cast<std::size_t>(band)]);
    const auto [mean, error] = paired_mean(values);
    curve.mean.push_back(mean);
    auto& interval = curve.interval.emplace_back();
    if (values.size() < 2) continue;
    const double width = half_width(values.size(), kConfidence) * error;
    interval = {mean - width, mean + width};
  }
  return curve;
}

std::optional<PerturbationResult::Bands> bands_of(std::span<const PerturbedDocument> documents, StateKind state,
                                                  bool same_count) {
  std::vector<const PerturbedDocument*> group;
  for (const PerturbedDocument& document : documents)
    if (document.same_count == same_count) group.push_back(&document);
  if (group.empty()) return std::nullopt;
  return PerturbationResult::Bands{curve_of(group, state, BinBand::kLow),
                                   curve_of(group, state, BinBand::kLowWithoutDc),
                                   curve_of(group, state, BinBand::kHigh)};
}

}  // namespace

PerturbedVersions perturbed_versions(const Tokenizer& tokenizer, std::span<const std::vector<std::int32_t>> windows,
                                     const PerturbationPlan& plan, const Synonyms& synonyms) {
  PerturbedVersions versions;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    DocumentVersions document = perturb_document(tokenizer, windows[n], n, plan, synonyms);
    if (!document.usable(plan)) continue;
    versions.original.push_back(std::move(document.original));
    versions.perturbed.push_back(std::move(document.perturbed));
    versions.documents.push_back({document.replaced, document.same_count, {}});
  }
  versions.left_out = windows.size() - versions.documents.size();
  if (versions.documents.empty())
    throw Error(ErrorCode::kData, "--text",
                "found no document in which a synonym fits before token " + std::to_string(plan.tokens) +
                    ", expected English text; all " + std::to_string(windows.size()) + " were left out");
  return versions;
}

PerturbationResult perturbation_result(PerturbationResult result, std::span<const PerturbedDocument> documents) {
  for (const PerturbedDocument& document : documents) {
    result.replaced_words += static_cast<double>(document.replaced);
    ++(document.same_count ? result.documents.same_count : result.documents.other_count);
  }
  result.replaced_words /= static_cast<double>(documents.size());
  for (const StateKind state : kPerturbedStates)
    result.states[state] =
        PerturbationResult::Groups{bands_of(documents, state, true), bands_of(documents, state, false)};
  return result;
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

void compare_documents(SpectralOps& ops, StateSource& original, StateSource& perturbed,
                       std::span<const std::size_t> layers, Journal& journal,
                       const std::function<void(std::size_t)>& done, std::span<PerturbedDocument> documents) {
  const std::size_t known = std::min(journal.records().size(), documents.size());
  for (std::size_t n = 0; n < known; ++n)
    documents[n] = perturbed_document_from(journal.record(n), documents[n], layers.size());
  done(known);
  run_in_groups(
      known, documents.size(), original.visits_together(0),
      [&](std::size_t n) { documents[n].layers = compare_versions(ops, original, perturbed, n, layers); },
      [&](std::size_t n) {
        journal.append(perturbed_document_json(documents[n]));
        done(n + 1);
      });
}

}  // namespace kvs::inline analyzers
