// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/head.h"

namespace kvs::inline results {

/// The part of the spectrum that is kept: the lowest or highest bins (or chunks), or the chunks with the largest Δ.
enum class KeptBand { kLow, kHigh, kBest };
constexpr std::array<std::string_view, 3> json_names(KeptBand) { return {"low", "high", "best"}; }

/// The states that are cut to the kept part of the spectrum. Other states keep their whole spectrum.
enum class CutStates { kKeys, kValues, kBoth };
inline constexpr std::array kCutStates{CutStates::kKeys, CutStates::kValues, CutStates::kBoth};
constexpr std::array<std::string_view, kCutStates.size()> json_names(CutStates) { return {"k", "v", "kv"}; }

/// Perplexity of a model when only a band of its states' spectra is kept (docs/spectra.md).
struct RetentionResult {
  /// The results for one band and one choice of states. Lists are indexed by position in `shares`.
  struct Curve {
    KeptBand band = KeptBand::kLow;
    CutStates states = CutStates::kKeys;
    std::vector<std::optional<double>> ppl = {};       // null if it overflows a double
    std::optional<std::vector<double>> nll_mean = {};  // absent in files of older versions
    std::vector<std::optional<double>> ratio = {};     // perplexity divided by the perplexity with whole spectra
    std::vector<draw::Interval> interval = {};         // 95 % interval of the ratio; nullopt for one document

    /// Returns the ratio at a share for charts. If `ratio` is null, computes the ratio from the NLLs, or returns
    /// draw::kNoValue without NLLs.
    double drawn_ratio(std::size_t share, const RetentionResult& of) const;
    static void fields(auto& curve, auto&& field) {
      field("band", curve.band)("states", curve.states)("ppl", curve.ppl);
      field.absent_or("nll_mean", curve.nll_mean);
      field("ratio", curve.ratio)("interval", curve.interval);
    }
  };
  ResultHead head = {};
  std::size_t documents = 0, window = 0;
  InputDigests inputs = {};
  std::string protocol = {}, transform = {}, key_space = {};
  std::size_t sinks = 0, recent = 0;
  std::vector<std::size_t> layers = {};  // layers that are cut
  std::string unit = {};                 // "bin" or "chunk"
  std::size_t units = 0;
  std::vector<double> shares = {};     // shares of the units that are kept
  std::vector<std::size_t> kept = {};  // [share]: number of kept units
  std::size_t scored_per_document = 0;
  std::optional<double> ppl_full = {}, nll_full = {};  // with whole spectra; ppl is null if it overflows a double
  std::vector<Curve> curves = {};
  std::optional<std::size_t> prefix = {};  // set with the continuation protocol
  double nll_full_error = 0;               // standard error; not written to the file

  static void fields(auto& of, auto&& field) {
    field.inlined(of.head);
    field("documents", of.documents)("window", of.window);
    field.inlined(of.inputs);
    field("protocol", of.protocol)("transform", of.transform)("key_space", of.key_space)("sinks", of.sinks)(
        "recent", of.recent)("layers", of.layers)("unit", of.unit)("units", of.units)("shares", of.shares)(
        "kept", of.kept)("scored_per_document", of.scored_per_document)("ppl_full", of.ppl_full);
    field.absent_or("nll_full", of.nll_full);
    field("curves", of.curves);
    field.absent_or("prefix", of.prefix);
  }
  static void check(const RetentionResult& of, const JsonCursor& json);
  /// Returns the heading of the figure.
  std::string heading() const;
  /// Returns "continuation, k_pre, DCT" for headings.
  std::string subject() const { return protocol + ", " + key_space + ", " + (transform == "dct" ? "DCT" : "DFT"); }
};

/// Returns "lowest", "highest" or "largest Δ".
std::string_view words_of(KeptBand band) noexcept;

/// Returns the summary that the command prints to stdout.
std::string to_text(const RetentionResult& result);
/// Draws relative perplexity on a logarithmic axis against the kept share, with one panel each for keys, values and
/// both.
draw::Chart retention_chart(const std::string& heading, const RetentionResult& result);

}  // namespace kvs::inline results
