// SPDX-License-Identifier: Apache-2.0
#include "core/free_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "core/control_groups.h"

namespace kvs::inline core {
namespace {

std::optional<std::size_t> number_in(const std::filesystem::path& path) {
  std::size_t number = 0;
  std::ifstream file(path);
  return file >> number ? std::optional(number) : std::nullopt;  // "max" does not parse: no limit
}

/// Returns the number that follows `key` at the start of a line; 0 if there is none.
std::size_t number_after(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  for (std::size_t number = 0; file >> word; file.ignore(SIZE_MAX >> 1, '\n'))
    if (word == key && file >> number) return number;
  return 0;
}

std::optional<std::size_t> left_in(const ControlGroup& group) {
  const auto limit = number_in(group.folder / (group.unified ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = number_in(group.folder / (group.unified ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return std::nullopt;
  const std::filesystem::path statistics = group.folder / "memory.stat";
  const std::size_t cached = number_after(statistics, "inactive_file") + number_after(statistics, "active_file");
  const std::size_t held = *used - std::min(*used, cached);
  return *limit - std::min(*limit, held);
}

}  // namespace

std::size_t free_memory(const std::filesystem::path& root) {
  const std::size_t kilobytes = number_after(root / "proc/meminfo", "MemAvailable:");
  std::size_t least = kilobytes == 0 ? SIZE_MAX : kilobytes * 1024;
  for (const ControlGroup& group : control_groups("memory", root))
    if (const auto left = left_in(group)) least = std::min(least, *left);
  return least;
}

}  // namespace kvs::inline core
