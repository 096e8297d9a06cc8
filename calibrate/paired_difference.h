#pragma once

#include <optional>
#include <span>
#include <utility>

namespace kvs {

/// Two ways to run the same documents, by their mean NLLs.
struct PairedDifference {
  double mean = 0;  // nats, over documents
  /// 95 % interval of the relative change of perplexity, exp(mean) − 1; none below two documents. Student's t over
  /// documents.
  std::optional<std::pair<double, double>> interval;
};

/// @param differences  of the documents' mean NLLs, at least one
PairedDifference paired_difference(std::span<const double> differences);

}  // namespace kvs
