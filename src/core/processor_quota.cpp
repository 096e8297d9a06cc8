#include "core/processor_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline core {
namespace {

namespace fs = std::filesystem;

/// A mounted cgroup hierarchy that can limit processors.
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
std::optional<Hierarchy> hierarchy_of(const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return std::nullopt;
  std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
  std::string id, parent, device, root, point, type, source, options;
  before >> id >> parent >> device >> root >> point;
  after >> type >> source >> options;
  if (type != "cgroup2" && (type != "cgroup" || !holds_word(options, "cpu"))) return std::nullopt;
  return Hierarchy{root, point, type == "cgroup2"};
}

/// Returns this process's group in `hierarchy`, read from /proc/self/cgroup, whose lines are "ID:CONTROLLERS:GROUP".
std::optional<fs::path> group_in(const Hierarchy& hierarchy, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (hierarchy.unified ? controllers.empty() : holds_word(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<double> quota_of(const fs::path& group, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream file(group / "cpu.max");
    file >> quota >> period;  // "max" does not parse: no limit
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;  // -1: no limit
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

/// Returns the smallest quota from the process's group up to the mounted group. If the mount does not show the
/// process's group, only the mounted group is read.
std::optional<double> min_quota(const Hierarchy& hierarchy, const fs::path& group, const fs::path& root) {
  const fs::path mounted = root / hierarchy.mount_point.relative_path();
  fs::path below = group.lexically_relative(hierarchy.root);
  if (below.empty() || *below.begin() == "..") below = ".";
  std::optional<double> least;
  for (fs::path at = (mounted / below).lexically_normal();; at = at.parent_path()) {
    if (const auto quota = quota_of(at, hierarchy.unified)) least = std::min(*quota, least.value_or(*quota));
    if (at.native().size() <= mounted.native().size()) return least;
  }
}

}  // namespace

std::optional<double> processor_quota(const fs::path& root) {
  std::optional<double> least;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto hierarchy = hierarchy_of(line);
    if (!hierarchy) continue;
    const auto group = group_in(*hierarchy, root);
    const auto quota = group ? min_quota(*hierarchy, *group, root) : std::nullopt;
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

}  // namespace kvs::inline core
