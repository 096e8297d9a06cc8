#include "eval/perplexity.h"

#include <cmath>

namespace kvs {

void PerplexitySum::add(double document_nll, std::size_t tokens) {
  nll += document_nll;
  scored += tokens;
  per_document.push_back(document_nll);
}

PerplexitySum& PerplexitySum::operator+=(const PerplexitySum& next) {
  nll += next.nll;
  scored += next.scored;
  per_document.insert(per_document.end(), next.per_document.begin(), next.per_document.end());
  return *this;
}

double PerplexitySum::perplexity() const noexcept { return std::exp(mean()); }

}  // namespace kvs
