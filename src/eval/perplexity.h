// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline eval {

/// Returns the standard error of a mean over tokens: over documents of equal length; for one document, over its tokens.
/// @param documents      sums, at least one
/// @param tokens         of all documents
/// @param token_squares  sum of the tokens' squares
double standard_error(std::span<const double> documents, std::size_t tokens, double token_squares);

/// Sums over tokens, in their order, in double.
struct TokenSums {
  double nll = 0, squares = 0;  // of the tokens' NLLs, nats

  void add(std::span<const float> tokens) noexcept;
};

/// NLL sums of some documents; perplexity = exp(sum / tokens) over all scored tokens of all documents.
struct PerplexitySum {
  double nll = 0;  // nats, summed per document in document order, in double
  std::size_t scored = 0;
  double squares = 0;  // of the tokens' NLLs
  std::vector<double> per_document;

  void add(double document_nll, std::size_t tokens, double token_squares = 0);
  void add(const TokenSums& document, std::size_t tokens) { add(document.nll, tokens, document.squares); }
  /// Adds the documents of another sum.
  PerplexitySum& operator+=(const PerplexitySum& next);
  double mean() const noexcept { return nll / static_cast<double>(scored); }
  double perplexity() const noexcept;
  /// Standard error of mean(): over documents; for one document, over its tokens.
  double error() const;
};

}  // namespace kvs::inline eval
