// SPDX-License-Identifier: Apache-2.0
#include "core/control_groups.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace kvs::inline core {
namespace {

namespace fs = std::filesystem;

/// A mounted cgroup hierarchy that has a controller.
struct Hierarchy {
  fs::path root, mount_point;  // `root`: the group that is mounted
  bool unified = false;        // version 2
};

/// Returns true if `word` is an element of the comma-separated `list`.
bool holds_word(std::string_view list, std::string_view word) {
  std::istringstream words{std::string(list)};
  for (std::string one; std::getline(words, one, ',');)
    if (one == word) return true;
  return false;
}

/// Parses a line of /proc/self/mountinfo: "36 35 0:29 ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS".
std::optional<Hierarchy> hierarchy_of(const std::string& line, std::string_view controller) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return std::nullopt;
  std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
  std::string id, parent, device, root, point, type, source, options;
  before >> id >> parent >> device >> root >> point;
  after >> type >> source >> options;
  if (type != "cgroup2" && (type != "cgroup" || !holds_word(options, controller))) return std::nullopt;
  return Hierarchy{root, point, type == "cgroup2"};
}

/// Returns this process's group in `hierarchy`, read from /proc/self/cgroup, whose lines are "ID:CONTROLLERS:GROUP".
std::optional<fs::path> group_in(const Hierarchy& hierarchy, std::string_view controller, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (hierarchy.unified ? controllers.empty() : holds_word(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<ControlGroup> groups;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto hierarchy = hierarchy_of(line, controller);
    if (!hierarchy) continue;
    const auto group = group_in(*hierarchy, controller, root);
    if (!group) continue;
    const fs::path mounted = root / hierarchy->mount_point.relative_path();
    fs::path below = group->lexically_relative(hierarchy->root);
    if (below.empty() || *below.begin() == "..") below = ".";
    for (fs::path at = (mounted / below).lexically_normal();; at = at.parent_path()) {
      groups.push_back({at, hierarchy->unified});
      if (at.native().size() <= mounted.native().size()) break;
    }
  }
  return groups;
}

}  // namespace kvs::inline core
