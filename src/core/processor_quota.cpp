// SPDX-License-Identifier: Apache-2.0
#include "core/processor_quota.h"

#include <algorithm>
#include <fstream>

#include "core/control_groups.h"

namespace kvs::inline core {
namespace {

std::optional<double> quota_of(const ControlGroup& group) {
  double quota = 0, period = 0;
  if (group.unified) {
    std::ifstream file(group.folder / "cpu.max");
    file >> quota >> period;  // "max" does not parse: no limit
  } else {
    std::ifstream(group.folder / "cpu.cfs_quota_us") >> quota;  // -1: no limit
    std::ifstream(group.folder / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

}  // namespace

std::optional<double> processor_quota(const std::filesystem::path& root) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups("cpu", root))
    if (const auto quota = quota_of(group)) least = std::min(*quota, least.value_or(*quota));
  return least;
}

}  // namespace kvs::inline core
