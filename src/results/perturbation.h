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

namespace kvs {

/// The states whose versions are compared.
inline constexpr std::array kPerturbedStates{StateKind::kKPre, StateKind::kV};

/// Mean over documents of a similarity by layer.
struct SimilarityCurve {
  std::vector<double> mean;              // [layer]
  std::vector<draw::Interval> interval;  // [layer] 95 %, Student's t; none below two documents

  /// Over layers.
  double overall() const;
  static void fields(auto& curve, auto&& field) { field("mean", curve.mean)("interval", curve.interval); }
};

/// Cosine similarity of the spectra of texts and of their copies with synonyms (docs/spectra.md).
struct PerturbationResult {
  struct Documents {
    std::size_t same_count = 0, other_count = 0, left_out = 0;
    static void fields(auto& documents, auto&& field) {
      field("same_count", documents.same_count)("other_count", documents.other_count)("left_out", documents.left_out);
    }
  };
  /// By band of the bins.
  struct Bands {
    SimilarityCurve low, low_without_dc, high;
    static void fields(auto& bands, auto&& field) {
      field("low", bands.low)("low_without_dc", bands.low_without_dc)("high", bands.high);
    }
  };
  /// Of one kind of state: documents whose tokens stay in place, and the others. A group without documents is absent.
  struct Groups {
    std::optional<Bands> same_count = {}, other_count = {};
    const std::optional<Bands>& of(bool same) const { return same ? same_count : other_count; }
    static void fields(auto& groups, auto&& field) {
      field.absent_or("same_count", groups.same_count);
      field.absent_or("other_count", groups.other_count);
    }
  };
  ResultHead head = {};
  std::optional<std::string> wordnet_sha256 = {};  // absent from files of older programs
  std::int64_t seed = 0;
  double share = 0;                      // of the words
  std::size_t window = 0, tokens = 0;    // tokens: of both versions
  std::vector<std::size_t> layers = {};  // the model's
  Documents documents = {};
  double replaced_words = 0;  // of a document, mean
  StateMembers<Groups> states = {};

  std::size_t documents_of(bool same) const { return same ? documents.same_count : documents.other_count; }
  /// The bands of kPerturbedStates; both are there for a group that has documents.
  const Bands& bands(StateKind state, bool same) const { return *states[state]->of(same); }

  static void fields(auto& of, auto&& field) {
    field.inlined(of.head);
    field.absent_or("wordnet_sha256", of.wordnet_sha256);
    field("seed", of.seed)("share", of.share)("window", of.window)("tokens", of.tokens)("layers", of.layers)(
        "documents", of.documents)("replaced_words", of.replaced_words)("states", of.states);
  }
  static void check(const PerturbationResult& of, const JsonCursor& json);
};

/// Means over layers, in words.
std::string to_text(const PerturbationResult& result);
/// Similarity by layer with its intervals, after FreqKV's figure 2: a column for each kind of state, a row for each
/// group of documents.
draw::Chart perturbation_chart(const std::string& heading, const PerturbationResult& result);

}  // namespace kvs
