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

namespace kvs {

/// Which part of the spectrum stays: its lowest or highest bins (or chunks), or the chunks of the largest Δ.
enum class KeptBand { kLow, kHigh, kBest };
template <>
inline constexpr std::array<std::string_view, 3> kJsonNames<KeptBand>{"low", "high", "best"};

/// The states of which only that part stays; the others stay whole.
enum class CutStates { kKeys, kValues, kBoth };
inline constexpr std::array kCutStates{CutStates::kKeys, CutStates::kValues, CutStates::kBoth};
template <>
inline constexpr std::array<std::string_view, kCutStates.size()> kJsonNames<CutStates>{"k", "v", "kv"};

/// Perplexity of models that keep a band of their states' spectra (docs/spectra.md).
struct RetentionResult {
  /// One band of some states. Lists are by position in `shares`.
  struct Curve {
    KeptBand band = KeptBand::kLow;
    CutStates states = CutStates::kKeys;
    std::vector<std::optional<double>> ppl = {};       // null beyond a double
    std::optional<std::vector<double>> nll_mean = {};  // absent from files of older programs
    std::vector<std::optional<double>> ratio = {};     // of perplexity to that of whole spectra
    std::vector<draw::Interval> interval = {};         // 95 % of the ratio; none of one document

    /// The ratio at a share as a chart draws it.
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
  std::vector<std::size_t> layers = {};  // that are cut
  std::string unit = {};                 // "bin" or "chunk"
  std::size_t units = 0;
  std::vector<double> shares = {};     // of the units that stay
  std::vector<std::size_t> kept = {};  // [share] units
  std::size_t scored_per_document = 0;
  std::optional<double> ppl_full = {}, nll_full = {};  // of whole spectra; ppl null beyond a double
  std::vector<Curve> curves = {};
  std::optional<std::size_t> prefix = {};  // with the continuation protocol
  double nll_full_error = 0;               // standard error; not in the file

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
  /// "continuation, k_pre, DCT", for headings.
  std::string subject() const { return protocol + ", " + key_space + ", " + (transform == "dct" ? "DCT" : "DFT"); }
};

/// "lowest", "highest", "largest Δ".
std::string_view words_of(KeptBand band) noexcept;

/// What the command says on stdout.
std::string to_text(const RetentionResult& result);
/// Relative perplexity against the share that is kept: one panel each for keys, values and both, a logarithmic axis.
draw::Chart retention_chart(const std::string& heading, const RetentionResult& result);

}  // namespace kvs
