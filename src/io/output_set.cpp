// SPDX-License-Identifier: Apache-2.0
#include "io/output_set.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "io/descriptor.h"

namespace kvs::inline io {
namespace {

bool entry_exists(const std::filesystem::path& path) noexcept {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

OutputSet::~OutputSet() {
  for (const std::filesystem::path& path : placed_) ::unlink(path.c_str());
}

const std::filesystem::path& OutputSet::stage(const std::filesystem::path& output) {
  targets_.push_back(resolve_output(output));
  return staged_.emplace_back(output, StagedOutput::Kind::kFile).path();
}

void OutputSet::add(const std::filesystem::path& output, std::string_view bytes) { write_staged(stage(output), bytes); }

void OutputSet::remove(const std::filesystem::path& output) { removed_.push_back(resolve_output(output)); }

void OutputSet::commit(bool force) {
  placed_.reserve(targets_.size());
  for (std::size_t n = 0; n < staged_.size(); ++n) {
    const bool is_new = !entry_exists(targets_[n]);
    const auto note_if_placed = [&]() noexcept {
      if (is_new && !entry_exists(staged_[n].path())) placed_.push_back(std::move(targets_[n]));
    };
    try {
      staged_[n].commit(force);
    } catch (...) {
      note_if_placed();  // the file may be in place although the sync of its folder failed
      throw;
    }
    note_if_placed();
  }
  placed_.clear();
  if (!force) return;
  for (const std::filesystem::path& path : removed_) ::unlink(path.c_str());
}

}  // namespace kvs::inline io
