#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/perturbation.h"
#include "draw/chart.h"
#include "io/json.h"

namespace kvs {

/// What one document's perturbation did to its states.
struct PerturbedDocument {
  std::size_t replaced = 0;                     // words before token T
  bool same_count = true;                       // before each replaced word's end both versions have as many tokens
  std::vector<ByState<BandSimilarity>> layers;  // [layer]
};

/// Mean over documents of a similarity by layer, with its 95 % interval (Student's t; none below two documents).
struct SimilarityCurve {
  std::vector<double> mean;  // [layer]
  std::vector<std::optional<std::pair<double, double>>> interval;
};
using SimilarityCurves = ByState<std::array<SimilarityCurve, kBinBands.size()>>;

/// Of the documents with `same_count`, or of the others; nothing if there are none.
std::optional<SimilarityCurves> similarity_curves(std::span<const PerturbedDocument> documents, bool same_count);

/// {"documents": {same_count, other_count}, "replaced_words", "states": {STATE: {same_count|other_count: {BAND: {mean,
/// interval}}}}}, lists by layer; docs/spectra.md describes it.
Json perturbation_json(std::span<const PerturbedDocument> documents);

/// Similarity of both halves of the bins by layer with 95 % intervals (results/similarity_chart.h): a row of the
/// documents whose tokens stay where they were and one of the others. @param layers  the model's, by position
draw::Chart perturbation_chart(const std::string& heading, std::span<const std::size_t> layers,
                               std::span<const PerturbedDocument> documents);

/// Means over layers, in words.
std::string perturbation_summary(std::span<const PerturbedDocument> documents);

/// A document as a record of a journal, and back.
Json perturbed_document_json(const PerturbedDocument& document);
/// @param planned  the document that it is of, without layers;  @param layers  that it has. @throws Error kInput
PerturbedDocument perturbed_document_from(const JsonCursor& record, const PerturbedDocument& planned,
                                          std::size_t layers);

}  // namespace kvs
