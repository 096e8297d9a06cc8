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

namespace kvs {

/// Writes configs for cells of a comparison into a folder.
class BestConfigs {
 public:
  /// @param record      provenance of the text that the comparison scores
  /// @param calibrated  the text that settings were chosen on, or nullptr
  BestConfigs(const ComparisonResult& comparison, std::span<const CompareCell> cells, const ModelSource& source,
              const Provenance& record, const Corpus* calibrated)
      : comparison_(comparison), cells_(cells), source_(source), record_(record), calibrated_(calibrated) {}

  /// Adds the config of cell `n` as `to`, with copies of the files that it names. Does nothing if `n` is empty.
  void add(const std::optional<std::size_t>& n, const std::filesystem::path& to, OutputSet& outputs);

 private:
  Json quality_of(const ComparedCell& found) const;
  Json made_config(const CompareCell& cell, const Json& quality) const;
  Json copied_config(const CompareCell& cell, const Json& quality, const std::filesystem::path& folder,
                     OutputSet& outputs);
  Provenance chosen_on(const CompareCell& cell) const;

  const ComparisonResult& comparison_;
  std::span<const CompareCell> cells_;
  const ModelSource& source_;
  const Provenance& record_;
  const Corpus* calibrated_;
  std::set<std::filesystem::path> copied_;
};

}  // namespace kvs
