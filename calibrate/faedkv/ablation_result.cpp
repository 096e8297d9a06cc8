// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/ablation_result.h"

#include <algorithm>
#include <numeric>

#include "eval/paired_difference.h"

namespace kvs::inline calibrate {

std::vector<std::vector<std::optional<double>>> AblationSums::losses(std::size_t layer_index) const {
  const auto scored = static_cast<double>(scored_per_document);
  std::vector<std::vector<std::optional<double>>> losses(ablated.front()[layer_index].size());
  for (std::size_t chunk = 0; chunk < losses.size(); ++chunk) {
    for (std::size_t n = 0; n < base.size(); ++n) {
      const std::optional<double>& sum = ablated[n][layer_index][chunk];
      losses[chunk].push_back(sum ? std::optional((*sum - base[n]) / scored) : std::nullopt);
    }
  }
  return losses;
}

AblationResult ablation_result(const AblationSums& sums) {
  const auto scored = static_cast<double>(sums.scored_per_document * sums.base.size());
  AblationResult result;
  result.scored_per_document = sums.scored_per_document;
  result.nll_base = std::accumulate(sums.base.begin(), sums.base.end(), 0.0) / scored;
  std::vector<double> means(sums.base);
  for (double& mean : means) mean /= static_cast<double>(sums.scored_per_document);
  result.nll_error = paired_mean(means).error;
  for (std::size_t layer = 0; layer < sums.layers(); ++layer) {
    auto& deltas = result.delta.emplace_back();
    auto& intervals = result.interval.emplace_back();
    for (const auto& losses : sums.losses(layer)) {
      std::vector<double> differences;
      for (const std::optional<double>& loss : losses)
        if (loss) differences.push_back(*loss);
      const PairedDifference difference = paired_difference(differences);
      deltas.push_back(growth(difference.mean));  // equally long documents: PPL/PPL_base = exp(mean difference)
      intervals.push_back(difference.interval);
    }
  }
  return result;
}

std::vector<std::vector<std::size_t>> ablated_documents(const AblationSums& sums) {
  std::vector<std::vector<std::size_t>> documents(sums.layers());
  for (std::size_t layer = 0; layer < sums.layers(); ++layer)
    for (const auto& losses : sums.losses(layer))
      documents[layer].push_back(
          static_cast<std::size_t>(std::ranges::count(losses, true, &std::optional<double>::has_value)));
  return documents;
}

}  // namespace kvs::inline calibrate
