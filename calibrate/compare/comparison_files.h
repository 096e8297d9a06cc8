#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/calibrated_cells.h"
#include "results/comparison.h"

namespace kvs {

/// The files that a comparison writes.
struct ComparisonFiles {
  std::filesystem::path out;   // the result
  std::filesystem::path best;  // the folder of the chosen cells' configs; empty: none
  std::vector<double> budgets = {}, losses = {};
  std::vector<std::string> configs = {};  // that take part, and are copied into `best`
  CalibrationPlan calibration = {};       // whose configs are written

  /// FILE_speed.json
  std::filesystem::path speeds() const;
  /// Every file that the run writes beside `out`, and may find there.
  /// @throws Error kUsage where two files that differ have one name in `best`
  std::vector<std::filesystem::path> others() const;
  /// Those of them that a run with this result has written.
  std::vector<std::filesystem::path> written(const ComparisonResult& result) const;
  /// Calls `use` with each chosen cell and its config in `best`, if there is such a folder.
  void for_each_choice(
      const ComparisonResult& result,
      const std::function<void(const std::optional<std::size_t>&, const std::filesystem::path&)>& use) const;
};

}  // namespace kvs
