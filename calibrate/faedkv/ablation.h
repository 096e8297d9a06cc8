// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/chunk_grid.h"
#include "calibrate/faedkv/ablation_result.h"
#include "calibrate/faedkv/chunk_race.h"
#include "eval/ablation_forward.h"
#include "eval/perplexity.h"
#include "io/journal.h"
#include "ranks/ranks.h"

namespace kvs::inline calibrate {

/// Number of documents in which a race ablates every chunk: an interval needs two.
constexpr std::size_t min_documents(std::size_t documents) noexcept { return std::min<std::size_t>(documents, 2); }

/// The ablations of a FAEDKV calibration: every chunk of every layer in every document, unless it races.
struct AblationPlan {
  /// A chunk is ablated in further documents only while it is open (judge_chunks()) and passes are left.
  struct Race {
    std::size_t passes = 0;  // maximum number of ablations of a chunk in a document
    double confidence = 0.95;
    std::uint64_t seed = 0;  // seed of the order of documents
  };
  AblationSetup setup;
  ChunkGrid grid;                         // of the config
  std::vector<std::size_t> chunk_counts;  // all ablated counts, the config's first
  std::vector<std::size_t> layers;
  double keep = 0.5;
  std::optional<Race> race;

  ChunkGrid grid_of(std::size_t chunks) const;
  std::size_t variants() const noexcept;  // of one document: chunks of every count and layer
  std::size_t max_passes(std::size_t documents) const noexcept;
};

/// The sums of an ablation as stored in its journal. A unit is one document's layer under one chunk count (in a race,
/// with the ablated chunks), or the document's base.
class AblationTable {
 public:
  explicit AblationTable(const AblationPlan& plan) : plan_(&plan) {}

  void store(const Json& unit);
  bool has(std::size_t document, std::size_t layer, std::size_t chunks) const;
  bool has_base(std::size_t document) const { return base_.contains(document); }
  /// Number of ablations of a chunk in a document.
  std::size_t passes() const noexcept { return passes_; }

  /// Sums of all documents that have a base, or of some documents.
  AblationSums sums(std::size_t chunks) const;
  AblationSums sums(std::size_t chunks, std::span<const std::size_t> documents) const;

 private:
  const AblationPlan* plan_;
  std::map<std::array<std::size_t, 3>, std::vector<std::optional<double>>> sums_;  // {document, layer, chunks}: [chunk]
  std::map<std::size_t, double> base_;                                             // [document]
  std::size_t passes_ = 0;
};

/// Returns a race of each layer, as far as `sums` go.
std::vector<ChunkRace> judge_layers(const AblationPlan& plan, const AblationSums& sums);
/// Returns the chunks to keep in each layer: the winners of its race, or without a race those with the largest Δ.
std::vector<std::vector<std::size_t>> choose_chunks(const AblationPlan& plan, const AblationSums& sums);

using AblationProgress = std::function<void(std::size_t done, std::size_t most)>;

/// Makes every pass of the plan that the journal does not hold yet, document by document. Ranks share a document's
/// layers. Before each document, a race judges by the previous documents, so that a resumed run makes the same choices.
/// @param journal   of rank 0; nullptr elsewhere
/// @param progress  called with the passes made and their maximum
/// @return on rank 0, and in a race on all ranks; elsewhere the results of the previous run
AblationTable ablate(AblationForward& forward, const AblationPlan& plan,
                     std::span<const std::vector<std::int32_t>> documents, Ranks& ranks, Journal* journal,
                     const AblationProgress& progress);

/// NLLs of the documents with every layer reduced to its chosen chunks.
struct KeptLosses {
  std::vector<PerplexitySum> kept;  // [chunk count of the plan]
  double base_error = 0;            // for one document: the standard error of the unchanged model's NLL over the tokens
};
/// Ranks share the documents; rank 0 has the result. Cost: a pass of each document for every chunk count.
/// @param table  of rank 0
KeptLosses kept_losses(AblationForward& forward, const AblationPlan& plan, const AblationTable& table,
                       std::span<const std::vector<std::int32_t>> documents, Ranks& ranks);

/// Returns the FLOPs of the maximum number of passes, plus two passes for each document: the unchanged model, and all
/// layers cut to their best chunks.
double ablation_flops(const AblationPlan& plan, const ModelConfig& model, std::size_t documents);

}  // namespace kvs::inline calibrate
