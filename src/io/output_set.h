#pragma once

#include <deque>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/staged_output.h"

namespace kvs {

/// Files that take their places together: all are whole beside their names before the first is put in place. Where one
/// cannot be, those that replaced nothing go again, so that the same command finds no file in its way.
class OutputSet {
 public:
  OutputSet() = default;
  ~OutputSet();
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;

  /// Writes `bytes` to a temporary. @throws Error kEnvironment
  void add(const std::filesystem::path& output, std::string_view bytes);
  /// Where to write a file that others will follow. @throws Error kEnvironment
  const std::filesystem::path& stage(const std::filesystem::path& output);
  /// A file that goes, if it is there and `force` is set, when the others are in place.
  void remove(const std::filesystem::path& output);
  /// Puts the files in place in the order in which they were added. @throws as StagedOutput::commit
  void commit(bool force);

 private:
  std::deque<StagedOutput> staged_;  // which does not move
  std::vector<std::filesystem::path> targets_, placed_, removed_;
};

}  // namespace kvs
