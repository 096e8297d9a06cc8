#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/compare/comparison.h"
#include "results/comparison.h"

namespace kvs {

/// Documents below which the samples of an interval are the parts of each document (kComparedParts).
inline constexpr std::size_t kFewDocuments = 4;

/// What two caches' losses differ by on the documents that both have: one entry for each document or, of fewer than
/// kFewDocuments, for each part of each document. Parts of one document are alike, so what they show holds for these
/// documents alone.
struct LossDifferences {
  std::vector<double> nll = {}, kl = {};  // nats a token, and the logarithm of the divergences' ratio
  std::size_t documents = 0;
  bool of_parts = false;
};
/// Of a cell from the full cache (`nll` alone), and from another cell.
LossDifferences from_full(const CellResult& result);
LossDifferences from_other(const CellResult& result, const CellResult& other);

/// What a mean difference says as a ratio, with the 95 % interval of Student's t over the samples. The mean is from
/// 1e-299 to 1e299; there is no interval of one sample, or where it ends above that.
SampledRatio ratio_of(const std::vector<double>& differences, bool of_parts);
/// "4 documents", or "16 parts of 2 documents alone".
std::string samples_text(const LossDifferences& differences);

}  // namespace kvs
