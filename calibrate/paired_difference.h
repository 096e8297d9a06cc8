#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

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

}  // namespace kvs
