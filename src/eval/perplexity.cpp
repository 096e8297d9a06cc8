#include "eval/perplexity.h"

#include <cmath>

namespace kvs {

void PerplexitySum::add(double document_nll, std::size_t tokens) {
  nll += document_nll;
  scored += tokens;
  per_document.push_back(document_nll);
}

double PerplexitySum::perplexity() const noexcept { return std::exp(mean()); }

}  // namespace kvs
