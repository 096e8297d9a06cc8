// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/chunk_grid.h"
#include "eval/ablation_forward.h"
#include "eval/perplexity.h"
#include "io/journal.h"
#include "results/retention.h"

namespace kvs::inline analyzers {

/// The measurements of a retention run: every share of every band for keys, values and both.
struct RetentionPlan {
  /// Keeps whole chunks; with `delta`, also the best ones.
  struct Chunks {
    ChunkGrid grid;
    std::vector<std::vector<double>> delta;  // [layer][chunk]
  };
  AblationSetup setup;
  std::vector<std::size_t> layers;  // layers that are filtered, ascending
  std::vector<double> shares;       // share of the bins or chunks that are kept, in (0, 1]
  std::optional<Chunks> chunks;

  /// units(): number of bins or chunks. kept(): number of them in a share, at least one.
  std::size_t units() const noexcept;
  std::size_t kept(double share) const noexcept { return kept_count(share, units()); }
  std::vector<KeptBand> bands() const;
  std::size_t variants() const { return bands().size() * kCutStates.size() * shares.size(); }
};

/// NLL sums by share of one band of some states.
struct RetentionCurve {
  KeptBand band;
  CutStates states;
  std::vector<PerplexitySum> points;  // [share]
};
struct Retention {
  PerplexitySum full;  // of the unchanged model
  std::vector<RetentionCurve> curves;
};

/// Measures the perplexity of models that keep only a band of their states' spectra. One forward pass of the prefix per
/// document serves all variants, which share batches after it (AblationForward::filtered).
/// Source: FreqKV's analysis of low and high frequencies, and FAEDKV's of the number of chunks.
/// @param journal  receives finished documents; documents that it already holds are not run again
/// @param done     called after each document with the number of documents done
Retention retain(AblationForward& forward, const RetentionPlan& plan,
                 std::span<const std::vector<std::int32_t>> documents, Journal& journal,
                 const std::function<void(std::size_t)>& done);

/// Fills in the members that plan and sums determine. @param result  holds the run's head
RetentionResult retention_result(RetentionResult result, const RetentionPlan& plan, const Retention& retention);
/// Returns the FLOPs of retain() on a number of documents.
double retention_flops(const RetentionPlan& plan, const ModelConfig& model, std::size_t documents);

}  // namespace kvs::inline analyzers
