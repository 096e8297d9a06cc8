// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analyzers/perturbation.h"
#include "io/journal.h"
#include "io/json.h"
#include "results/perturbation.h"
#include "texts/perturbed_document.h"

namespace kvs::inline analyzers {

/// The effect of a perturbation on the states of one document.
struct PerturbedDocument {
  std::size_t replaced = 0;                     // words before token T
  bool same_count = true;                       // before each replaced word's end both versions have as many tokens
  std::vector<ByState<BandSimilarity>> layers;  // [layer]
};

/// Both versions of the usable documents, and what is known of them before a pass.
struct PerturbedVersions {
  std::vector<std::vector<std::int32_t>> original = {}, perturbed = {};
  std::vector<PerturbedDocument> documents = {};
  std::size_t left_out = 0;  // documents that are not usable
};
/// @throws Error kData if no document is usable
PerturbedVersions perturbed_versions(const Tokenizer& tokenizer, std::span<const std::vector<std::int32_t>> windows,
                                     const PerturbationPlan& plan, const Synonyms& synonyms);

/// Fills in the means over `documents`. @param result  holds the run's head
PerturbationResult perturbation_result(PerturbationResult result, std::span<const PerturbedDocument> documents);

/// Fills the layers of `documents`, of which the sources hold a version each.
/// @param journal  keeps the documents that are done; those that it holds are not run again
/// @param done     called with the number of documents done
void compare_documents(SpectralOps& ops, StateSource& original, StateSource& perturbed,
                       std::span<const std::size_t> layers, Journal& journal,
                       const std::function<void(std::size_t)>& done, std::span<PerturbedDocument> documents);

/// Converts a document to a record of a journal, and back.
Json perturbed_document_json(const PerturbedDocument& document);
/// @param planned  the record's document, without layers
/// @param layers   number of layers of the record
/// @throws Error kInput
PerturbedDocument perturbed_document_from(const JsonCursor& record, const PerturbedDocument& planned,
                                          std::size_t layers);

}  // namespace kvs::inline analyzers
