// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline io {

/// A file or folder that is written under a temporary name next to the output and replaces it in one step when it is
/// complete. It is removed if it is not committed. The next OutputLock removes what a killed process left.
class StagedOutput {
 public:
  enum class Kind { kFile, kFolder };

  /// Creates an empty file or folder. First follows `output` if it is a symlink. @throws Error kEnvironment.
  StagedOutput(const std::filesystem::path& output, Kind kind);
  ~StagedOutput();
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  /// Returns the path to write to: the file itself, or the folder for files.
  const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Syncs everything and puts it in place. At every moment `output` is the old file or folder, or the whole new one.
  /// @throws Error kConflict if `output` exists and !force; kEnvironment.
  void commit(bool force);

 private:
  std::filesystem::path output_, target_, temporary_;
  Kind kind_;
  bool armed_ = true;
};

/// Returns 0 or errno: EEXIST if `to` exists. Uses a hard link on a file system without RENAME_NOREPLACE, because that
/// does not replace `to` either.
int rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) noexcept;
/// Writes the whole file at StagedOutput::path(). @throws Error kEnvironment.
void write_staged(const std::filesystem::path& staged, std::string_view bytes);

/// Like check_output, for a folder. With `force`, a folder may be replaced only if it holds a JSON file `record` that a
/// command of this program wrote, and only files that the record's `files` lists. Other files are the user's.
/// @throws Error kUsage, kConflict naming such files, kEnvironment.
void check_output_folder(const std::filesystem::path& output, bool force, std::string_view record);

/// Returns the relative paths of all files in a folder and its subfolders, sorted.
std::vector<std::string> files_of_folder(const std::filesystem::path& folder);

}  // namespace kvs::inline io
