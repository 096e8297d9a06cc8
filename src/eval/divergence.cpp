// SPDX-License-Identifier: Apache-2.0
#include "eval/divergence.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kvs::inline eval {
namespace {

using Row = Eigen::Map<const Eigen::ArrayXf>;

/// Returns log Σ exp(z), in f32 except for the sum.
double log_sum(const Row& z) {
  const float largest = z.maxCoeff();
  return static_cast<double>(largest) + std::log((z - largest).exp().cast<double>().sum());
}

constexpr std::size_t kBlock = 64;  // tokens whose logits are computed together

/// Returns the logits of `count` rows from `first` on.
std::vector<float> logits_of(Decoder& decoder, const ResidualStream& pass, std::size_t first, std::size_t count) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return decoder.logits(pass, rows);
}

}  // namespace

KeptLogits kept_logits(Decoder& decoder, const ResidualStream& pass, std::size_t first, std::size_t last) {
  KeptLogits kept{.first = first};
  kept.rows.reserve((last - first) * decoder.model().config().vocabulary);
  for (std::size_t block = first; block < last; block += kBlock) {
    const std::vector<float> logits = logits_of(decoder, pass, block, std::min(kBlock, last - block));
    kept.rows.insert(kept.rows.end(), logits.begin(), logits.end());
  }
  return kept;
}

std::vector<TokenDivergence> token_divergences(Decoder& decoder, const ResidualStream& reference,
                                               const ResidualStream& group, const ComparedTokens& tokens,
                                               const KeptLogits* kept) {
  const std::size_t vocabulary = decoder.model().config().vocabulary;
  std::vector<TokenDivergence> of_token(tokens.to - tokens.from);
  for (std::size_t block = tokens.from; block < tokens.to; block += kBlock) {
    const std::size_t rows = std::min(kBlock, tokens.to - block);
    std::vector<float> computed;
    if (kept == nullptr) computed = logits_of(decoder, reference, block, rows);
    const float* const expected =
        kept == nullptr ? computed.data() : kept->rows.data() + (block - kept->first) * vocabulary;
    const std::vector<float> found = logits_of(decoder, group, block - tokens.first, rows);
#pragma omp parallel for schedule(static)
    for (std::size_t row = 0; row < rows; ++row) {
      const auto size = static_cast<Eigen::Index>(vocabulary);
      const Row p(expected + row * vocabulary, size), q(found.data() + row * vocabulary, size);
      const double log_p = log_sum(p), log_q = log_sum(q);
      // Σ p (z_p − z_q) − (log Z_p − log Z_q): small differences are formed before they are weighted.
      const double mean = ((p - static_cast<float>(log_p)).exp() * (p - q)).cast<double>().sum();
      Eigen::Index best_p = 0, best_q = 0;
      p.maxCoeff(&best_p);
      q.maxCoeff(&best_q);
      of_token[block - tokens.from + row] = {mean - (log_p - log_q), best_p == best_q};
    }
  }
  return of_token;
}

void Divergence::add(const TokenDivergence& found, LargestDivergence text, double nll_change) {
  text.kl = found.kl;
  if (tokens == 0 || text.kl > largest.kl) largest = text;
  kl += found.kl;
  squares += found.kl * found.kl;
  agreed += found.agreed ? 1 : 0;
  ++tokens;
  kls.add(found.kl);
  changes += std::abs(nll_change);
  change.add(std::abs(nll_change));
}

void Divergence::append(const Divergence& next, std::size_t documents) {
  if (tokens == 0 || next.largest.kl > largest.kl) {
    largest = next.largest;
    largest.document += documents;
  }
  kl += next.kl;
  squares += next.squares;
  agreed += next.agreed;
  tokens += next.tokens;
  kls += next.kls;
  changes += next.changes;
  change += next.change;
}

}  // namespace kvs::inline eval
