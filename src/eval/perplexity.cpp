// SPDX-License-Identifier: Apache-2.0
#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "eval/paired_difference.h"

namespace kvs::inline eval {

double standard_error(std::span<const double> documents, std::size_t tokens, double token_squares) {
  const auto count = static_cast<double>(tokens), of_document = count / static_cast<double>(documents.size());
  std::vector<double> means(documents.begin(), documents.end());
  for (double& mean : means) mean /= of_document;
  if (documents.size() > 1) return paired_mean(means).error;
  if (tokens < 2) return 0;
  return std::sqrt(std::max(0.0, token_squares / count - means.front() * means.front()) / (count - 1));
}

void TokenSums::add(std::span<const float> tokens) noexcept {
  double of_these = 0, of_squares = 0;
  for (const float token : tokens) {
    of_these += token;
    of_squares += static_cast<double>(token) * token;
  }
  nll += of_these;
  squares += of_squares;
}

void PerplexitySum::add(double document_nll, std::size_t tokens, double token_squares) {
  nll += document_nll;
  scored += tokens;
  squares += token_squares;
  per_document.push_back(document_nll);
}

PerplexitySum& PerplexitySum::operator+=(const PerplexitySum& next) {
  nll += next.nll;
  scored += next.scored;
  squares += next.squares;
  per_document.insert(per_document.end(), next.per_document.begin(), next.per_document.end());
  return *this;
}

double PerplexitySum::perplexity() const noexcept { return std::exp(mean()); }
double PerplexitySum::error() const { return standard_error(per_document, scored, squares); }

}  // namespace kvs::inline eval
