#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "texts/word_replacement.h"
#include "tokenizer/tokenizer.h"

namespace kvs {

/// How documents are perturbed.
struct PerturbationPlan {
  double share = 0.01;     // of the words, replaced by synonyms
  std::size_t tokens = 0;  // T: both versions are cut to so many
  std::int32_t bos = -1;   // an id that windows begin with, and so do both versions; or none
  std::uint64_t seed = 0;  // of document 0; each has its own
};

/// A document and its perturbation, tokenised from their texts: [T] each.
struct DocumentVersions {
  std::vector<std::int32_t> original, perturbed;
  std::size_t replaced = 0;  // words that begin before token T
  bool same_count = true;    // each of them ends at the same token in both versions

  /// Both are T tokens long and differ.
  bool usable(const PerturbationPlan& plan) const noexcept {
    return replaced > 0 && original.size() == plan.tokens && perturbed.size() == plan.tokens;
  }
};

/// Both versions of `window`, shorter than T where its text has no more tokens.
DocumentVersions perturb_document(const Tokenizer& tokenizer, std::span<const std::int32_t> window,
                                  std::size_t document, const PerturbationPlan& plan, const Synonyms& synonyms);

}  // namespace kvs
