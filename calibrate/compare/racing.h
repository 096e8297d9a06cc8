#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs {

/// What a cell has shown so far.
struct CellScores {
  double bytes = 0;        // the most that it held
  std::vector<double> kl;  // mean KL divergence from the full cache, nats a token, of the first documents
  double seconds = 0;      // that these documents took
};

/// Documents [first, last) of some cells.
struct Round {
  std::size_t first = 0, last = 0;
  std::vector<std::size_t> cells;
};

/// Its logarithm. Divergences below 1e-9 are rounding, and alike.
double log_divergence(double kl);
/// Mean over all its documents.
double mean_kl(const CellScores& cell);

/// Whether each of `active` is clearly beaten: another cell of no more bytes has a lower divergence on the documents
/// that both have. One document is clear if it differs kClearOnOne times; of more the 95 % interval of the mean
/// logarithm of the ratio (Student's t over documents) must exclude 0. @return one for each of `active`
inline constexpr double kClearOnOne = 4;
std::vector<bool> is_dominated(std::span<const CellScores> cells, std::span<const std::size_t> active);

/// The cells that no other beats in bytes without losing in divergence, of those with the most documents; ascending in
/// bytes. A tie goes to the first.
std::vector<std::size_t> pareto_front(std::span<const CellScores> cells);

/// The first `count` active cells when the best come first: the front, then by how many times their divergence is the
/// front's at their bytes.
std::vector<std::size_t> most_promising(std::span<const CellScores> cells, std::span<const std::size_t> active,
                                        std::size_t count);

/// What of a round after the first fits `seconds`, by what its cells took so far, when the front's passes over all
/// `documents`, or the first kFrontDocuments, must fit too: the least promising cells but the front's stay behind, then
/// documents.
inline constexpr std::size_t kFrontDocuments = 8;
Round fit_to_time(Round round, std::span<const CellScores> cells, std::size_t documents, double seconds);

}  // namespace kvs
