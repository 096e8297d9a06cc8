// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "calibrate/calibration.h"

namespace kvs::inline calibrate {
namespace {

#define KVS_ADDRESS(Name) &k##Name##Calibration,
#define KVS_SKIP(Name)
constexpr std::array kCalibrations{KVS_METHODS(KVS_SKIP, KVS_ADDRESS)};
#undef KVS_ADDRESS
#undef KVS_SKIP

}  // namespace

std::span<const Calibration* const> all_calibrations() noexcept { return kCalibrations; }

const Calibration* find_calibration(const Method& method) noexcept {
  const auto found = std::ranges::find(kCalibrations, &method, &Calibration::method);
  return found == kCalibrations.end() ? nullptr : *found;
}

const SeriesMethod* find_series(std::string_view name) noexcept {
  for (const Calibration* const calibration : kCalibrations)
    if (const auto found = std::ranges::find(calibration->series, name, &SeriesMethod::name);
        found != calibration->series.end())
      return &*found;
  return nullptr;
}

}  // namespace kvs::inline calibrate
