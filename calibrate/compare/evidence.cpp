// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/evidence.h"

#include <algorithm>
#include <cmath>

#include "calibrate/compare/racing.h"
#include "eval/paired_difference.h"

namespace kvs::inline compare {
namespace {

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

/// Returns true if the first `documents` documents of a configuration are too few and have parts.
bool takes_parts(const ConfigurationResult& result, std::size_t documents) {
  return documents < kFewDocuments && result.sum.parts.size() >= documents;
}

double scored_tokens(const ConfigurationResult& result) {
  const PerplexitySum& sum = result.sum.sum;
  return static_cast<double>(sum.scored) / static_cast<double>(sum.per_document.size());
}

}  // namespace

LossDifferences from_full(const ConfigurationResult& result) {
  LossDifferences found{.documents = result.scores.kl.size()};
  found.of_parts = takes_parts(result, found.documents);
  for (std::size_t n = 0; n < found.documents; ++n) {
    if (found.of_parts) {
      for (const PartLoss& part : result.sum.parts[n]) found.nll.push_back(part.nll - part.full_nll);
    } else {
      const double difference = result.sum.sum.per_document[n] - result.sum.full->sum.per_document[n];
      found.nll.push_back(difference / scored_tokens(result));
    }
  }
  return found;
}

LossDifferences from_other(const ConfigurationResult& result, const ConfigurationResult& other) {
  LossDifferences found{.documents = std::min(result.scores.kl.size(), other.scores.kl.size())};
  found.of_parts = takes_parts(result, found.documents) && takes_parts(other, found.documents);
  for (std::size_t n = 0; n < found.documents; ++n) {
    if (found.of_parts) {
      for (std::size_t part = 0; part < result.sum.parts[n].size(); ++part) {
        const PartLoss &own = result.sum.parts[n][part], &others = other.sum.parts[n][part];
        found.nll.push_back(own.nll - others.nll);
        found.kl.push_back(log_divergence(own.kl) - log_divergence(others.kl));
      }
    } else {
      const double difference = result.sum.sum.per_document[n] - other.sum.sum.per_document[n];
      found.nll.push_back(difference / scored_tokens(result));
      found.kl.push_back(log_divergence(result.scores.kl[n]) - log_divergence(other.scores.kl[n]));
    }
  }
  return found;
}

SampledRatio ratio_of(const std::vector<double>& differences, bool of_parts) {
  const PairedDifference found = paired_difference(differences);
  constexpr double kMaxLog = 690;  // e^690 is 1e299: drawn or multiplied values stay finite
  SampledRatio ratio{.mean = std::exp(std::clamp(found.mean, -kMaxLog, kMaxLog)),
                     .over = of_parts ? Samples::kParts : Samples::kDocuments};
  if (found.interval && std::log1p(found.interval->second) < kMaxLog)
    ratio.interval = {1 + found.interval->first, 1 + found.interval->second};
  return ratio;
}

std::string samples_text(const LossDifferences& differences) {
  std::string documents = counted(differences.documents, "document");
  if (!differences.of_parts) return documents;
  return counted(differences.nll.size(), "part") + " of " + documents + " alone";
}

}  // namespace kvs::inline compare
