// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/json_fields.h"

namespace kvs::inline results {

/// The change of perplexity when one chunk of one layer's spectrum is removed: `calibration.ablation` of a faedkv
/// config.
struct AblationResult {
  using Interval = std::optional<std::pair<double, double>>;
  std::string protocol, key_space;
  std::size_t chunks = 0;
  std::vector<std::size_t> layers;
  std::size_t scored_per_document = 0;
  std::optional<double> ppl_base = {};     // of the unchanged model
  double nll_base = 0, nll_error = 0;      // mean over all scored tokens (nats), and its standard error over documents
  std::vector<std::vector<double>> delta;  // [layer][chunk]: (PPL − PPL_base) / PPL_base over the chunk's documents
  /// [layer][chunk]: 95 % interval of Δ over documents; nullopt for fewer than two documents. Student's t interval of
  /// the paired differences of the documents' mean NLLs, mapped by exp(·) − 1.
  std::vector<std::vector<Interval>> interval;
  // Set only for races:
  std::optional<std::vector<std::vector<std::size_t>>> documents =
      {};                                 // [layer][chunk]: number of documents that it was ablated in
  std::optional<double> confidence = {};  // of a single comparison of two chunks
  std::optional<std::vector<std::vector<std::size_t>>> undecided =
      {};  // [layer]: chunks that were never separated from the threshold

  static void fields(auto& result, auto&& field) {
    field("protocol", result.protocol)("key_space", result.key_space)("chunks", result.chunks)("layers", result.layers);
    field.newer("scored_per_document", result.scored_per_document);
    field("ppl_base", result.ppl_base);
    field.newer("nll_base", result.nll_base);
    field.newer("nll_error", result.nll_error);
    field("delta", result.delta)("interval", result.interval);
    field.absent_or("documents", result.documents);
    field.absent_or("confidence", result.confidence);
    field.absent_or("undecided", result.undecided);
  }
  /// Checks that each map has a row for each layer and a column for each chunk.
  static void check(const AblationResult& result, const JsonCursor& json);
};

/// `quality` of a faedkv config: the loss on the calibration documents with only the kept chunks.
struct FaedkvQuality {
  struct Point {
    std::size_t chunks = 0;
    std::optional<double> ppl;
    double nll_mean = 0, nll_error = 0;
    static void fields(auto& result, auto&& field) {
      field("chunks", result.chunks)("ppl", result.ppl)("nll_mean", result.nll_mean)("nll_error", result.nll_error);
    }
  };
  std::string text = "calibration documents";
  std::optional<double> ppl_full;
  double nll_full = 0;
  std::optional<double> ppl;
  double nll_mean = 0, nll_error = 0;
  double keep = 0;                          // share of the chunks that are kept
  std::optional<std::vector<Point>> sweep;  // the loss for several numbers of kept chunks
  static void fields(auto& result, auto&& field) {
    field("text", result.text)("ppl_full", result.ppl_full)("nll_full", result.nll_full)("ppl", result.ppl)(
        "nll_mean", result.nll_mean)("nll_error", result.nll_error)("keep", result.keep);
    field.absent_or("sweep", result.sweep);
  }
};

/// The result of a FAEDKV calibration.
struct FaedkvResult {
  AblationResult ablation;
  FaedkvQuality quality;
  std::vector<std::vector<std::size_t>> kept;  // [layer]: the chunks that are kept
  std::size_t passes = 0, full_passes = 0;     // passes that were made; passes that a full table takes
};
std::string to_text(const FaedkvResult& found);

/// Maps Δ of one layer linearly to [0, 1]. Returns zeros if all values are equal.
std::vector<double> scaled_to_unit(std::span<const double> delta);

}  // namespace kvs::inline results
