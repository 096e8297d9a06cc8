#pragma once

#include <cstddef>
#include <vector>

namespace kvs {

/// NLL sums of some documents; perplexity = exp(sum / tokens) over all scored tokens of all documents.
struct PerplexitySum {
  double nll = 0;  // nats, summed per document in document order, in double
  std::size_t scored = 0;
  std::vector<double> per_document;

  void add(double document_nll, std::size_t tokens);
  /// Adds the documents of another sum.
  PerplexitySum& operator+=(const PerplexitySum& next);
  double mean() const noexcept { return nll / static_cast<double>(scored); }
  double perplexity() const noexcept;
};

}  // namespace kvs
