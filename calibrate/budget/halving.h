// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

/// A candidate and its losses so far.
struct HalvedCandidate {
  std::size_t candidate = 0;
  std::vector<double> losses;  // on documents 0 …

  double mean() const noexcept;
};

/// A candidate to be measured on a document.
struct CandidateTrial {
  std::size_t candidate = 0, document = 0;
};
/// Returns the loss of each trial of a round. Trials do not depend on each other.
using TrialLosses = std::function<std::vector<double>(std::span<const CandidateTrial> round)>;

/// Successive halving over documents: all candidates are measured on the first document, the better half on twice as
/// many, and so on until two are measured on all. Clearly worse candidates are dropped earlier: if Student's 95 %
/// interval of the paired difference to the best excludes 0. All candidates of a round use the same documents, so
/// common effects cancel. A candidate that is left alone is not measured further.
/// Source: Karnin, Koren & Somekh (ICML 2013); doubled documents as Jamieson & Talwalkar (AISTATS 2016); intervals as
/// Maron & Moore (NIPS 6, 1994).
/// @return best first: by number of documents, then by mean loss (on ties the lower candidate)
std::vector<HalvedCandidate> successive_halving(std::size_t candidates, std::size_t documents,
                                                const TrialLosses& losses);
/// Returns the maximum number of losses measured.
std::size_t halving_losses(std::size_t candidates, std::size_t documents) noexcept;

}  // namespace kvs::inline calibrate
