// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>

#include "calibrate/compare/grid.h"
#include "calibrate/config/config.h"
#include "io/output_set.h"
#include "model/model.h"
#include "results/comparison.h"
#include "texts/corpus.h"

namespace kvs::inline compare {

/// Writes the configs of configurations of a comparison into a folder.
class BestConfigs {
 public:
  /// @param record      provenance of the text that the comparison scores
  /// @param calibrated  the text that settings were chosen on, or nullptr
  BestConfigs(const ComparisonResult& comparison, std::span<const Configuration> configurations,
              const ModelSource& source, const Provenance& record, const Corpus* calibrated)
      : comparison_(comparison),
        configurations_(configurations),
        source_(source),
        record_(record),
        calibrated_(calibrated) {}

  /// Adds the config of entry `n` as `to`, with copies of the files that it names. Does nothing if `n` is empty.
  /// @return the config; null if `n` is empty
  Json add(const std::optional<std::size_t>& n, const std::filesystem::path& to, OutputSet& outputs);

 private:
  Json quality_of(const ComparedConfiguration& found) const;
  Json made_config(const Configuration& one, const Json& quality) const;
  Json copied_config(const Configuration& one, const Json& quality, const std::filesystem::path& folder,
                     OutputSet& outputs);
  Provenance chosen_on(const Configuration& one) const;

  const ComparisonResult& comparison_;
  std::span<const Configuration> configurations_;
  const ModelSource& source_;
  const Provenance& record_;
  const Corpus* calibrated_;
  std::set<std::filesystem::path> copied_;
};

}  // namespace kvs::inline compare
