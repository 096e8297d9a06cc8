#include "calibrate/faedkv/ablation_result.h"

#include <numeric>

#include "eval/paired_difference.h"

namespace kvs::inline calibrate {

std::vector<std::vector<std::optional<double>>> AblationSums::losses(std::size_t layer) const {
  const auto scored = static_cast<double>(scored_per_document);
  std::vector<std::vector<std::optional<double>>> losses(ablated.front()[layer].size());
  for (std::size_t chunk = 0; chunk < losses.size(); ++chunk) {
    for (std::size_t n = 0; n < base.size(); ++n) {
      const std::optional<double>& sum = ablated[n][layer][chunk];
      losses[chunk].push_back(sum ? std::optional((*sum - base[n]) / scored) : std::nullopt);
    }
  }
  return losses;
}

AblationResult ablation_result(const AblationSums& sums) {
  const auto scored = static_cast<double>(sums.scored_per_document * sums.base.size());
  AblationResult result;
  result.scored_per_document = sums.scored_per_document;
  result.documents.emplace();
  result.nll_base = std::accumulate(sums.base.begin(), sums.base.end(), 0.0) / scored;
  std::vector<double> means(sums.base);
  for (double& mean : means) mean /= static_cast<double>(sums.scored_per_document);
  result.nll_error = paired_mean(means).error;
  for (std::size_t layer = 0; layer < sums.layers(); ++layer) {
    auto& deltas = result.delta.emplace_back();
    auto& documents = result.documents->emplace_back();
    auto& intervals = result.interval.emplace_back();
    for (const auto& losses : sums.losses(layer)) {
      std::vector<double> differences;
      for (const std::optional<double>& loss : losses)
        if (loss) differences.push_back(*loss);
      const PairedDifference difference = paired_difference(differences);
      deltas.push_back(growth(difference.mean));  // equally long documents: PPL/PPL_base = exp(mean difference)
      documents.push_back(differences.size());
      intervals.push_back(difference.interval);
    }
  }
  return result;
}

}  // namespace kvs::inline calibrate
