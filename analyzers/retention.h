#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/chunk_grid.h"
#include "eval/filtered_forward.h"
#include "eval/perplexity.h"
#include "io/journal.h"
#include "results/retention.h"

namespace kvs {

/// What a retention run measures: every share of every band for keys, values and both.
struct RetentionPlan {
  /// Whole chunks stay, and of `delta` the best.
  struct Chunks {
    ChunkGrid grid;
    std::vector<std::vector<double>> delta;  // [layer][chunk]
  };
  AblationSetup setup;
  std::vector<std::size_t> layers;  // that are cut, ascending
  std::vector<double> shares;       // of the bins or chunks that stay, in (0, 1]
  std::optional<Chunks> chunks;

  /// How many bins or chunks there are, and how many a share of them is: at least one.
  std::size_t units() const noexcept;
  std::size_t kept(double share) const noexcept { return kept_count(share, units()); }
  std::vector<KeptBand> bands() const;
  std::size_t variants() const { return bands().size() * kCutStates.size() * shares.size(); }
};

/// NLL sums of one band of some states by share.
struct RetentionCurve {
  KeptBand band;
  CutStates states;
  std::vector<PerplexitySum> points;  // [share]
};
struct Retention {
  PerplexitySum full;  // of the unchanged model
  std::vector<RetentionCurve> curves;
};

/// Perplexity of models that keep only a band of their states' spectra. One forward pass of the prefix a document
/// serves all variants, and they share batches after it (AblationForward::filtered).
/// Source: FreqKV's analysis of low and high frequencies, and FAEDKV's of the number of chunks.
/// @param journal  keeps the documents that are done; those that it holds are not run again
/// @param done     called after each document with the number of documents done
Retention retain(AblationForward& forward, const RetentionPlan& plan,
                 std::span<const std::vector<std::int32_t>> documents, Journal& journal,
                 const std::function<void(std::size_t)>& done);

/// All that a result says of plan and sums. @param result  says already where it comes from
RetentionResult retention_result(RetentionResult result, const RetentionPlan& plan, const Retention& retention);

}  // namespace kvs
