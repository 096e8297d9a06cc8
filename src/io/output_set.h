// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/staged_output.h"

namespace kvs::inline io {

/// Files that take their places together. All are completely written under temporary names before the first is put in
/// place. If one cannot be put in place, the new files are removed again (not those that replaced a file), so that the
/// same command can run again.
class OutputSet {
 public:
  OutputSet() = default;
  ~OutputSet();
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;

  /// Writes `bytes` to a temporary file. @throws Error kEnvironment
  void add(const std::filesystem::path& output, std::string_view bytes);
  /// Returns the path to write a file to. @throws Error kEnvironment
  const std::filesystem::path& stage(const std::filesystem::path& output);
  /// Removes a file, if it exists and `force` is set, after the other files are in place.
  void remove(const std::filesystem::path& output);
  /// Puts the files in place in the order of their addition. @throws as StagedOutput::commit
  void commit(bool force);

 private:
  std::deque<StagedOutput> staged_;  // a deque, because StagedOutput does not move
  std::vector<std::filesystem::path> targets_, placed_, removed_;
};

}  // namespace kvs::inline io
