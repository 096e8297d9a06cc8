// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kvs::inline io {

/// Limits of a child's resources beyond those its parent uses at the fork.
struct IsolationLimits {
  std::size_t memory_bytes = 512UL << 20;
  unsigned cpu_seconds = 60;
  std::size_t result_bytes = 64UL << 20;
};

/// Runs `task` in a forked child that cannot write files, and returns its result. Use it for code that cannot be
/// trusted with a hostile file: the caller survives whatever happens to the child.
/// @param file  the file that the child reads, for messages
/// @throws Error as the task threw it; kInput "the HDF5 library failed on this file" if the child died of a signal or a
///         limit; kEnvironment if no child can be created, or if it failed while the caller's limit left it less
///         memory. Interrupted if a signal asked both to stop.
std::string run_isolated(std::string_view file, const std::function<std::string()>& task, IsolationLimits limits = {});

}  // namespace kvs::inline io
