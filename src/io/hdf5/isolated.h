#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kvs {

/// What a child may use beyond what its parent has at the fork.
struct IsolationLimits {
  std::size_t memory_bytes = 512UL << 20;
  unsigned cpu_seconds = 60;
  std::size_t result_bytes = 64UL << 20;
};

/// Runs `task` in a forked child that can write no file, and returns what it returned. For code that cannot be trusted
/// with a hostile file: whatever happens to the child, the caller goes on.
/// @param file  what the child reads, for messages
/// @throws Error as the task threw it; kInput "the HDF5 library failed on this file" if the child died of a signal or a
///         limit; kEnvironment if there is no child to be had, or it failed where the caller's limit left it less
///         memory. Interrupted if a signal asked both to stop.
std::string run_isolated(std::string_view file, const std::function<std::string()>& task, IsolationLimits limits = {});

}  // namespace kvs
