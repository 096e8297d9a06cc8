#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kvs {

/// A candidate, as far as it was measured.
struct HalvedCandidate {
  std::size_t candidate = 0;
  std::vector<double> losses;  // of documents 0 …

  double mean() const noexcept;
};

/// A candidate to be measured on a document.
struct CandidateTrial {
  std::size_t candidate = 0, document = 0;
};
/// The loss of each trial of a round, none of which depends on another.
using TrialLosses = std::function<std::vector<double>(std::span<const CandidateTrial> round)>;

/// Successive halving over documents: all candidates are measured on the first, the better half of them on twice as
/// many, and so on until two are measured on all. Sooner go those that are clearly worse than the best: Student's 95 %
/// interval of the paired difference excludes 0. Documents are the same for all candidates of a round, so what they
/// have in common cancels. One that is left alone is measured no further.
/// Source: Karnin, Koren & Somekh (ICML 2013); doubled documents as Jamieson & Talwalkar (AISTATS 2016); intervals as
/// Maron & Moore (NIPS 6, 1994).
/// @return best first: those measured on more documents, among them by mean loss (on ties the lower candidate)
std::vector<HalvedCandidate> successive_halving(std::size_t candidates, std::size_t documents,
                                                const TrialLosses& losses);
/// The losses that it measures at most.
std::size_t halving_losses(std::size_t candidates, std::size_t documents) noexcept;

}  // namespace kvs
