#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/comparison.h"

namespace kvs {

/// "8 documents", or "2 of 8 documents" where `scored` were.
std::string documents_of(const ComparisonResult& result, std::size_t scored);
/// Cells that were scored on as many documents, which alone can be compared, the most first.
std::vector<std::vector<const ComparedCell*>> alike(const ComparisonResult& result);
/// Decoded tokens per second of a cell, where it was timed.
std::optional<double> speed_of(const ComparedCell& cell, const std::optional<ComparisonSpeeds>& speeds);

/// The settings of a cell and the type that its rows are stored in, in words.
std::string settings_of(const ComparedCell& cell);
/// The change of perplexity in words, of a cell whose change is within a double.
std::string loss_words(const ComparedCell& cell);

/// What it says: the cost of each method by size, the smallest cache for a loss, what is of no use, what calibration
/// gained.
std::vector<std::string> comparison_findings(const ComparisonResult& result);

}  // namespace kvs
