// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/halving.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "eval/paired_difference.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kFirstDocuments = 1, kFinalists = 2;

std::size_t next_documents(std::size_t now, std::size_t documents) noexcept {
  return std::min(documents, now == 0 ? kFirstDocuments : 2 * now);
}
std::size_t survivors(std::size_t alive) noexcept { return std::max(std::min(alive, kFinalists), (alive + 1) / 2); }

/// Compares two candidates that were measured on the same documents.
bool is_clearly_worse(const HalvedCandidate& one, const HalvedCandidate& best) {
  constexpr double kConfidence = 0.95;
  const std::size_t documents = one.losses.size();
  if (documents < 2) return false;
  std::vector<double> differences(documents);
  std::ranges::transform(one.losses, best.losses, differences.begin(), std::minus());
  const PairedMean difference = paired_mean(differences);
  return difference.mean > half_width(documents, kConfidence) * difference.error;
}

}  // namespace

double HalvedCandidate::mean() const noexcept {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

std::vector<HalvedCandidate> successive_halving(std::size_t candidates, std::size_t documents,
                                                const TrialLosses& losses) {
  std::vector<HalvedCandidate> all(candidates);
  for (std::size_t n = 0; n < candidates; ++n) all[n].candidate = n;
  std::size_t alive = candidates;
  for (std::size_t done = 0, next = 0; done < documents && (done == 0 || alive > 1); done = next) {
    next = next_documents(done, documents);
    std::vector<CandidateTrial> round;
    for (std::size_t n = 0; n < alive; ++n)
      for (std::size_t document = done; document < next; ++document) round.push_back({all[n].candidate, document});
    const std::vector<double> found = losses(round);
    for (std::size_t n = 0; n < round.size(); ++n) all[n / (next - done)].losses.push_back(found[n]);
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(alive);
    std::sort(all.begin(), last, [](const HalvedCandidate& a, const HalvedCandidate& b) {
      return std::pair(a.mean(), a.candidate) < std::pair(b.mean(), b.candidate);
    });
    const auto close = std::stable_partition(
        all.begin() + 1, last, [&](const HalvedCandidate& one) { return !is_clearly_worse(one, all.front()); });
    alive = std::min(survivors(alive), static_cast<std::size_t>(close - all.begin()));
  }
  return all;
}

std::size_t halving_losses(std::size_t candidates, std::size_t documents) noexcept {
  std::size_t sum = 0, alive = candidates;
  for (std::size_t done = 0, next = 0; done < documents; done = next) {
    next = next_documents(done, documents);
    sum += alive * (next - done);
    alive = survivors(alive);
  }
  return sum;
}

}  // namespace kvs::inline calibrate
