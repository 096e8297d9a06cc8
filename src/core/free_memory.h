// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

namespace kvs::inline core {

/// Returns the bytes of memory that this process may still use without swapping: what the system has available, or less
/// if a control group of the process has a limit. Cached files count as free.
/// @param root  the folder that holds /proc and the groups' mount points  @return SIZE_MAX if /proc says nothing
std::size_t free_memory(const std::filesystem::path& root = "/");

}  // namespace kvs::inline core
