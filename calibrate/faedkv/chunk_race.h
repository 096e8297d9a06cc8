#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvs {

/// Of one layer: [chunk][document], nothing where the chunk was not ablated (AblationSums::losses).
using ChunkLosses = std::vector<std::vector<std::optional<double>>>;

enum class ChunkVerdict { kDropped, kOpen, kKept };

/// Where the chunks of a layer stand.
struct ChunkRace {
  std::vector<ChunkVerdict> verdict;  // [chunk]
  /// [chunk]: how clear of the threshold it lies, as a multiple of what a verdict needs; above 1 there is one.
  std::vector<double> margin;
};

/// Judges which chunks are among the `kept` of a layer that hurt most when they are lost, as far as their documents
/// tell. A chunk is kept once it lies clearly above at least C − kept of the C chunks, dropped once clearly below at
/// least `kept`. Clearly: Student's interval of the paired difference, over the documents that both chunks were ablated
/// in, excludes 0 at `confidence`. What documents have in common cancels in it, so it is far narrower than the two
/// chunks' own intervals. Below two common documents nothing is clear.
///
/// Source: racing for the best of many, Maron & Moore (NIPS 6, 1994), with blocking as Moore & Lee (ICML 1994);
/// verdicts for a set of `kept` as the selection race of Heidrich-Meisner & Igel (ICML 2009). Deviation: Student's
/// intervals where those bound by Hoeffding's or Bernstein's inequality.
///
/// Approximate: differences are taken as normal; `confidence` is that of one comparison. A layer makes up to
/// C(C − 1) / 2 of them and looks again after each document, and no correction is made, so the share of wrong verdicts
/// may exceed 1 − confidence (docs/faedkv.md measures it).
/// Cost O(C² · documents).
ChunkRace judge_chunks(const ChunkLosses& losses, std::size_t kept, double confidence);

/// The `kept` chunks to keep, ascending: those with the verdict, then the open ones, then the dropped ones; among
/// equals those with the larger Δ, then the lower index.
std::vector<std::size_t> kept_chunks(const ChunkRace& race, std::span<const double> delta, std::size_t kept);

/// The open chunks of each race among those of `among`, ascending; only the `most` of least margin of all races
/// together (on ties the first).
std::vector<std::vector<std::size_t>> open_chunks(std::span<const ChunkRace> races,
                                                  std::span<const std::vector<std::size_t>> among, std::size_t most);

/// How many of `open` chunks to ablate in the next of `documents` documents: their number falls by one factor from
/// document to document, such that `passes` are spent with the last. Verdicts apart, this is sequential halving
/// (Karnin, Koren & Somekh, ICML 2013) with a factor that fits the budget: early documents tell little, so early on
/// few chunks are left behind.
std::size_t chunks_to_go_on(std::size_t open, std::size_t documents, std::size_t passes) noexcept;

/// 0 … documents − 1 in the random order of `seed`: neighbours of one text are alike, and verdicts are for all texts.
std::vector<std::size_t> shuffled_documents(std::size_t documents, std::uint64_t seed);

}  // namespace kvs
