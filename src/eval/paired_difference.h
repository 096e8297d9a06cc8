// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "io/json.h"

namespace kvs::inline eval {

/// Mean of the documents' differences and its standard error.
struct PairedMean {
  double mean = 0, error = 0;  // error: 0 for fewer than two documents
};
/// @param differences  at least one
PairedMean paired_mean(std::span<const double> differences);
/// Returns the half width, in standard errors, of an interval of Student's t over `documents` documents (at least two).
double half_width(std::size_t documents, double confidence);

/// Returns exp(difference) − 1, the relative change of perplexity with a mean NLL; at most the largest double.
double growth(double difference);

/// Difference between two ways to run the same documents, by their mean NLLs.
struct PairedDifference {
  double mean = 0;  // nats, over documents
  /// 95 % interval of the relative change of perplexity, growth(mean), by Student's t over documents; nullopt for fewer
  /// than two documents.
  std::optional<std::pair<double, double>> interval;
};

/// @param differences  of the documents' mean NLLs, at least one
PairedDifference paired_difference(std::span<const double> differences);
/// Returns the difference of `nll` from `other`, the mean NLLs of the same documents in two runs.
PairedDifference paired_difference(std::span<const double> nll, std::span<const double> other);

/// Returns `difference` (nats) and `interval` (null if there is none), as in a config's calibration.
Json difference_json(const PairedDifference& difference);
/// Returns the change of perplexity as "-1.2 % (95 %: -2.1 to -0.3)".
std::string difference_text(const PairedDifference& difference);

}  // namespace kvs::inline eval
