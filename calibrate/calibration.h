// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "calibrate/budget/grid.h"
#include "calibrate/config_series.h"
#include "calibrate/loaded_config.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {

/// How a method is calibrated, and how its configs are run.
struct Calibration {
  const Method* method;
  /// Settings for a byte budget; empty settings(): the method has none to choose from.
  BudgetGrid grid = {};
  /// Reads the files of a config, for a method without Method::make. @param config  checked by read_config()
  /// @throws Error kUnsupported if the model cannot run it; kInput, kData for a tensor
  std::shared_ptr<const LoadedConfig> (*load)(const Json& config, const std::filesystem::path& path,
                                              const ModelSource& source) = nullptr;
  /// The ways to write configs for the budgets of a comparison.
  std::span<const SeriesMethod> series = {};
};

#define KVS_DECLARE(Name) extern const Calibration k##Name##Calibration;
#define KVS_SKIP(Name)
KVS_METHODS(KVS_SKIP, KVS_DECLARE)
#undef KVS_DECLARE
#undef KVS_SKIP

std::span<const Calibration* const> all_calibrations() noexcept;
/// Returns nullptr if the method has no calibration.
const Calibration* find_calibration(const Method& method) noexcept;
/// Returns the way of writing configs with this name, or nullptr.
const SeriesMethod* find_series(std::string_view name) noexcept;

}  // namespace kvs::inline calibrate
