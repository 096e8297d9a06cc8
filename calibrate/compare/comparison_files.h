// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/calibrated_configurations.h"
#include "results/comparison.h"

namespace kvs::inline compare {

/// The files that a comparison writes.
struct ComparisonFiles {
  std::filesystem::path out;   // the result
  std::filesystem::path best;  // the folder of the chosen configurations' configs; empty: none
  std::vector<double> budgets = {}, losses = {};
  std::vector<std::string> configs = {};  // configs that take part, copied into `best`
  CalibrationPlan calibration = {};       // its configs are written

  /// Returns the path FILE_speed.json.
  std::filesystem::path speeds() const;
  /// Returns all files other than `out` that the run may write, or may find from an earlier run.
  /// @throws Error kUsage if two different files have the same name in `best`
  std::vector<std::filesystem::path> others() const;
  /// Returns the files of others() that a run with this result has written.
  std::vector<std::filesystem::path> written(const ComparisonResult& result) const;
  /// Calls `use` with each chosen configuration and its config in `best`. Does nothing if `best` is empty.
  void for_each_choice(
      const ComparisonResult& result,
      const std::function<void(const std::optional<std::size_t>&, const std::filesystem::path&)>& use) const;
};

}  // namespace kvs::inline compare
