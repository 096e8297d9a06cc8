// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

/// Losses of one layer: [chunk][document], nullopt if the chunk was not ablated (AblationSums::losses).
using ChunkLosses = std::vector<std::vector<std::optional<double>>>;

enum class ChunkVerdict { kDropped, kOpen, kKept };

/// The state of a layer's chunks.
struct ChunkRace {
  std::vector<ChunkVerdict> verdict;  // [chunk]
  /// [chunk]: distance from the threshold as a multiple of what a verdict needs; above 1 there is a verdict.
  std::vector<double> margin;
};

/// Judges which chunks are among the `kept` chunks of a layer whose loss hurts most, as far as the documents tell. A
/// chunk is kept once it is clearly above at least C − kept of the C chunks, and dropped once it is clearly below at
/// least `kept`. "Clearly" means that Student's interval of the paired difference, over the documents in which both
/// chunks were ablated, excludes 0 at `confidence`. Effects that are common to the chunks of a document cancel, so this
/// interval is far narrower than the two chunks' own intervals. With fewer than two common documents nothing is clear.
///
/// Source: racing for the best of many, Maron & Moore (NIPS 6, 1994), with blocking as Moore & Lee (ICML 1994).
/// Verdicts for a set of `kept` as the selection race of Heidrich-Meisner & Igel (ICML 2009). Deviation: Student's
/// intervals instead of bounds by Hoeffding's or Bernstein's inequality.
///
/// Approximate: differences are treated as normal, and `confidence` is that of one comparison. A layer makes up to C(C
/// − 1) / 2 comparisons and repeats them after each document without correction, so the share of wrong verdicts may
/// exceed 1 − confidence (docs/faedkv.md measures it).
/// Cost O(C² · documents).
ChunkRace judge_chunks(const ChunkLosses& losses, std::size_t kept, double confidence);

/// Returns the `kept` chunks to keep, ascending. Chunks with the verdict come first, then open ones, then dropped ones.
/// Among equals the larger Δ comes first, then the lower index.
std::vector<std::size_t> kept_chunks(const ChunkRace& race, std::span<const double> delta, std::size_t kept);

/// Returns the open chunks of each race that are in `among`, ascending. Of all races together, only the `most` chunks
/// with the smallest margin are returned (on ties the first).
std::vector<std::vector<std::size_t>> open_chunks(std::span<const ChunkRace> races,
                                                  std::span<const std::vector<std::size_t>> among, std::size_t most);

/// Returns the number of `open` chunks to ablate in the next of `documents` documents. The number falls by a constant
/// factor per document, such that `passes` are used up with the last document. Apart from verdicts, this is sequential
/// halving (Karnin, Koren & Somekh, ICML 2013) with a factor that fits the budget: early documents tell little, so few
/// chunks are dropped early.
std::size_t chunks_to_go_on(std::size_t open, std::size_t documents, std::size_t passes) noexcept;

/// Returns 0 … documents − 1 in random order: neighbours in a text are alike, and verdicts are for all texts.
std::vector<std::size_t> shuffled_documents(std::size_t documents, std::uint64_t seed);

}  // namespace kvs::inline calibrate
