// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "texts/word_replacement.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline texts {

/// How documents are perturbed.
struct PerturbationPlan {
  double share = 0.01;     // share of the words that synonyms replace
  std::size_t tokens = 0;  // T: length to which both versions are cut
  std::int32_t bos = -1;   // id that windows and both versions begin with; -1: none
  std::uint64_t seed = 0;  // of document 0; each document has its own seed
};

/// A document and its perturbation, both tokenised from their texts: [T] each.
struct DocumentVersions {
  std::vector<std::int32_t> original, perturbed;
  std::size_t replaced = 0;  // words that begin before token T
  bool same_count = true;    // each replaced word ends at the same token in both versions

  /// Returns true if both versions have T tokens and differ.
  bool usable(const PerturbationPlan& plan) const noexcept {
    return replaced > 0 && original.size() == plan.tokens && perturbed.size() == plan.tokens;
  }
};

/// Returns both versions of `window`; shorter than T if its text has no more tokens.
DocumentVersions perturb_document(const Tokenizer& tokenizer, std::span<const std::int32_t> window,
                                  std::size_t document, const PerturbationPlan& plan, const Synonyms& synonyms);

}  // namespace kvs::inline texts
