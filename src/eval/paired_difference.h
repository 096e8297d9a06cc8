#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "io/json.h"

namespace kvs {

/// Mean of some documents' differences, and its standard error.
struct PairedMean {
  double mean = 0, error = 0;  // error: 0 below two documents
};
/// @param differences  at least one
PairedMean paired_mean(std::span<const double> differences);
/// Half width, in standard errors, of an interval of Student's t over `documents` documents, at least two.
double half_width(std::size_t documents, double confidence);

/// exp(difference) − 1, how perplexity changes with a mean NLL; the largest double where none holds it.
double growth(double difference);

/// Two ways to run the same documents, by their mean NLLs.
struct PairedDifference {
  double mean = 0;  // nats, over documents
  /// 95 % interval of the relative change of perplexity, growth(mean); none below two documents. Student's t over
  /// documents.
  std::optional<std::pair<double, double>> interval;
};

/// @param differences  of the documents' mean NLLs, at least one
PairedDifference paired_difference(std::span<const double> differences);
/// Of `nll` from `other`, the same documents' mean NLLs the one way and the other.
PairedDifference paired_difference(std::span<const double> nll, std::span<const double> other);

/// `difference` (nats) and `interval` (null if there is none), as a config's calibration has them.
Json difference_json(const PairedDifference& difference);
/// "-1.2 % (95 %: -2.1 to -0.3)": the change of perplexity.
std::string difference_text(const PairedDifference& difference);

}  // namespace kvs
