#pragma once

#include <filesystem>
#include <optional>

namespace kvs {

/// Processors whose time the control groups of this process leave it, such as 1.5: the least quota of its own group and
/// of those above it (`cpu.max` of version 2, `cpu.cfs_quota_us` of version 1). A container has one that was started
/// with a limit of processors.
/// @param root  where /proc and the groups' mount points lie  @return nothing without a limit
std::optional<double> processor_quota(const std::filesystem::path& root = "/");

}  // namespace kvs
