// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline compare {

/// The scores of a configuration so far.
struct RaceScores {
  double bytes = 0;        // maximum
  std::vector<double> kl;  // mean KL divergence from the full cache of each of the first documents, nats per token
  double seconds = 0;      // time for these documents
};

/// Documents [first, last) of some configurations.
struct Round {
  std::size_t first = 0, last = 0;
  std::vector<std::size_t> configurations;
};

/// Returns the logarithm of a divergence. Divergences below 1e-9 are rounding errors and count as equal.
double log_divergence(double kl);
/// Returns the mean divergence over all documents of a configuration.
double mean_kl(const RaceScores& one);

/// Returns for each of `active` whether it is clearly dominated: another configuration of no more bytes has a lower
/// divergence on the documents that both have. With one document, a factor of kClearOnOne is clear. With more, the 95 %
/// interval of the mean log ratio (Student's t over documents) must exclude 0.
inline constexpr double kClearOnOne = 4;
std::vector<bool> is_dominated(std::span<const RaceScores> scores, std::span<const std::size_t> active);

/// Returns the Pareto front in bytes and divergence of the configurations with the most documents, ascending in bytes.
/// The first configuration of a tie is kept.
std::vector<std::size_t> pareto_front(std::span<const RaceScores> scores);

/// Returns the `count` best active configurations: first the front, then by the ratio of their divergence to the
/// front's at their bytes.
std::vector<std::size_t> most_promising(std::span<const RaceScores> scores, std::span<const std::size_t> active,
                                        std::size_t count);

/// Shrinks a round after the first to fit `seconds`, by the measured time of its configurations. The front's passes
/// over all `documents`, or over the first kFrontDocuments, must fit too. The least promising configurations outside
/// the front are dropped first, then documents.
inline constexpr std::size_t kFrontDocuments = 8;
Round fit_to_time(Round round, std::span<const RaceScores> scores, std::size_t documents, double seconds);

}  // namespace kvs::inline compare
