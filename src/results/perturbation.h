// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"
#include "results/states.h"

namespace kvs::inline results {

/// The states that are compared between a text and its copy.
inline constexpr std::array kPerturbedStates{StateKind::kKPre, StateKind::kV};

/// The mean similarity over documents, by layer.
struct SimilarityCurve {
  std::vector<double> mean;              // [layer]
  std::vector<draw::Interval> interval;  // [layer] 95 %, Student's t; nullopt for fewer than two documents

  /// Returns the mean over layers.
  double overall() const;
  static void fields(auto& curve, auto&& field) { field("mean", curve.mean)("interval", curve.interval); }
};

/// Cosine similarity between the spectra of texts and the spectra of their copies with synonyms (docs/spectra.md).
struct PerturbationResult {
  struct Documents {
    std::size_t same_count = 0, other_count = 0, left_out = 0;
    static void fields(auto& documents, auto&& field) {
      field("same_count", documents.same_count)("other_count", documents.other_count)("left_out", documents.left_out);
    }
  };
  /// One curve for each band of the bins.
  struct Bands {
    SimilarityCurve low, low_without_dc, high;
    static void fields(auto& bands, auto&& field) {
      field("low", bands.low)("low_without_dc", bands.low_without_dc)("high", bands.high);
    }
  };
  /// The results of one kind of state for two groups: documents whose number of tokens does not change, and the others.
  /// A group without documents is absent.
  struct Groups {
    std::optional<Bands> same_count = {}, other_count = {};
    const std::optional<Bands>& of(bool same) const { return same ? same_count : other_count; }
    static void fields(auto& groups, auto&& field) {
      field.absent_or("same_count", groups.same_count);
      field.absent_or("other_count", groups.other_count);
    }
  };
  ResultHead head = {};
  std::optional<std::string> wordnet_sha256 = {};  // absent in files of older versions
  std::int64_t seed = 0;
  double share = 0;                      // share of the words
  std::size_t window = 0, tokens = 0;    // tokens: length of both versions
  std::vector<std::size_t> layers = {};  // layer indices of the model
  Documents documents = {};
  double replaced_words = 0;  // mean per document
  StateMembers<Groups> states = {};

  std::size_t documents_of(bool same) const { return same ? documents.same_count : documents.other_count; }
  /// Returns the bands of one of kPerturbedStates. The group must have documents.
  const Bands& bands(StateKind state, bool same) const { return *states[state]->of(same); }

  static void fields(auto& of, auto&& field) {
    field.inlined(of.head);
    field.absent_or("wordnet_sha256", of.wordnet_sha256);
    field("seed", of.seed)("share", of.share)("window", of.window)("tokens", of.tokens)("layers", of.layers)(
        "documents", of.documents)("replaced_words", of.replaced_words)("states", of.states);
  }
  static void check(const PerturbationResult& of, const JsonCursor& json);
  /// Returns the heading of the figure.
  std::string heading() const;
};

/// Describes the means over layers in words.
std::string to_text(const PerturbationResult& result);
/// Draws the similarity by layer with its intervals (FreqKV, figure 2). There is one column for each kind of state and
/// one row for each group of documents.
draw::Chart perturbation_chart(const std::string& heading, const PerturbationResult& result);

}  // namespace kvs::inline results
