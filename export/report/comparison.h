// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/comparison.h"

namespace kvs::inline report {

using ComparedList = std::vector<const ComparedConfiguration*>;

/// Returns "8 documents", or "2 of 8 documents" if only `scored` documents were scored.
std::string documents_of(const ComparisonResult& result, std::size_t scored);
/// Groups configurations by the number of scored documents, most documents first. Only one group is comparable.
std::vector<ComparedList> alike(const ComparisonResult& result);
/// Returns the decoded tokens per second of a configuration, if it was timed.
std::optional<double> speed_of(const ComparedConfiguration& one, const std::optional<ComparisonSpeeds>& speeds);

/// Returns the settings and the storage type of a configuration in words.
std::string settings_of(const ComparedConfiguration& one);
/// Returns the change of perplexity in words. The change must fit a double.
std::string loss_words(const ComparedConfiguration& one);

/// Returns the findings: the cost of each method by size, the smallest cache for a loss, useless caches, and the gain
/// of calibration.
std::vector<std::string> comparison_findings(const ComparisonResult& result);

}  // namespace kvs::inline report
