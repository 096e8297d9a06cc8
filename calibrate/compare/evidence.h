// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/compare/comparison.h"
#include "results/comparison.h"

namespace kvs::inline compare {

/// With fewer documents, the samples of an interval are the parts of each document (kComparedParts).
inline constexpr std::size_t kFewDocuments = 4;

/// Differences of two caches' losses on the documents that both have: one entry per document or, with fewer than
/// kFewDocuments, one per part of each document. Parts of one document are correlated, so the result holds for these
/// documents only.
struct LossDifferences {
  std::vector<double> nll = {}, kl = {};  // nll: nats per token; kl: log of the divergences' ratio
  std::size_t documents = 0;
  bool of_parts = false;
};
/// Return the differences of a configuration from the full cache (`nll` only) and from another configuration.
LossDifferences from_full(const ConfigurationResult& result);
LossDifferences from_other(const ConfigurationResult& result, const ConfigurationResult& other);

/// Returns a mean difference as a ratio, with the 95 % interval of Student's t over the samples. The mean is clamped to
/// [1e-299, 1e299]. There is no interval with one sample, or if the interval ends above that range.
SampledRatio ratio_of(const std::vector<double>& differences, bool of_parts);
/// Returns the samples in words: "4 documents" or "16 parts of 2 documents alone".
std::string samples_text(const LossDifferences& differences);

}  // namespace kvs::inline compare
