// SPDX-License-Identifier: Apache-2.0
#include "core/old_names.h"

#include <algorithm>
#include <mutex>

namespace kvs::inline core {
namespace {

struct Notes {
  std::mutex mutex;
  std::vector<std::string> lines;
};

Notes& notes() {
  static Notes all;
  return all;
}

}  // namespace

void note_old_name(std::string_view place, std::string_view name) {
  std::string line = std::string(place) + " is now " + std::string(name);
  const std::scoped_lock lock(notes().mutex);
  if (std::ranges::find(notes().lines, line) == notes().lines.end()) notes().lines.push_back(std::move(line));
}

std::vector<std::string> old_name_notes() {
  const std::scoped_lock lock(notes().mutex);
  return notes().lines;
}

}  // namespace kvs::inline core
