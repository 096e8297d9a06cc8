#include "eval/perplexity.h"

#include <cmath>

namespace kvs {

void PerplexitySum::add(double document_nll, std::size_t tokens) {
  nll += document_nll;
  scored += tokens;
  per_document.push_back(document_nll);
}

double PerplexitySum::perplexity() const noexcept { return std::exp(mean()); }

PerplexitySum measure_perplexity(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                 StateHook* hook, const std::function<void(std::size_t)>& done) {
  PerplexitySum sum;
  for (const auto& tokens : documents) {
    double nll = 0;
    for (const float value : document_nll(decoder, tokens, hook)) nll += value;
    sum.add(nll, tokens.size() - 1);
    if (done) done(sum.per_document.size());
  }
  return sum;
}

}  // namespace kvs
