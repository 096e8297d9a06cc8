#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace kvs {

/// A candidate, as far as it was measured.
struct HalvedCandidate {
  std::size_t candidate = 0;
  std::vector<double> losses;  // of documents 0 …

  double mean() const noexcept;
};

/// The loss of a document with a candidate.
using CandidateLoss = std::function<double(std::size_t candidate, std::size_t document)>;

/// Successive halving over documents: all candidates are measured on the first, the better half of them on twice as
/// many, and so on until two are measured on all. Sooner go those that are clearly worse than the best: Student's 95 %
/// interval of the paired difference excludes 0. Documents are the same for all candidates of a round, so what they
/// have in common cancels. One that is left alone is measured no further.
/// Source: Karnin, Koren & Somekh (ICML 2013); doubled documents as Jamieson & Talwalkar (AISTATS 2016); intervals as
/// Maron & Moore (NIPS 6, 1994).
/// @return best first: those measured on more documents, among them by mean loss (on ties the lower candidate)
std::vector<HalvedCandidate> halve(std::size_t candidates, std::size_t documents, const CandidateLoss& loss);
/// The losses that it measures at most.
std::size_t halving_losses(std::size_t candidates, std::size_t documents) noexcept;

}  // namespace kvs
