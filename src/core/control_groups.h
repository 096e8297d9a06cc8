// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace kvs::inline core {

/// A folder of files that describe a control group.
struct ControlGroup {
  std::filesystem::path folder;
  bool unified = false;  // version 2
};

/// Returns this process's control groups with `controller`, such as "cpu", and the groups above them, up to the mounted
/// group. If a mount does not show the process's group, only the mounted group is returned.
/// @param root  the folder that holds /proc and the groups' mount points
std::vector<ControlGroup> control_groups(std::string_view controller, const std::filesystem::path& root);

}  // namespace kvs::inline core
