// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace kvs::inline core {

/// Returns the number of processors that this process's control groups allow, such as 1.5. It is the smallest quota of
/// its own group and of the groups above (`cpu.max` of version 2, `cpu.cfs_quota_us` of version 1). A container that
/// was started with a processor limit has such a quota.
/// @param root  the folder that holds /proc and the groups' mount points  @return nullopt without a limit
std::optional<double> processor_quota(const std::filesystem::path& root = "/");

}  // namespace kvs::inline core
