#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// A file or a folder that is written under a temporary name beside its own and takes its place at once, when it is
/// whole. What is not committed is removed; what a killed process left goes with the next OutputLock.
class StagedOutput {
 public:
  enum class Kind { kFile, kFolder };

  /// Creates an empty file or folder. A symlink `output` is followed first. @throws Error kEnvironment.
  StagedOutput(const std::filesystem::path& output, Kind kind);
  ~StagedOutput();
  StagedOutput(const StagedOutput&) = delete;
  StagedOutput& operator=(const StagedOutput&) = delete;

  /// Where to write: the file itself, or files in the folder.
  const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Syncs everything and puts it in place, so that `output` is at every moment the old one or the whole new one.
  /// @throws Error kConflict if `output` exists and !force; kEnvironment.
  void commit(bool force);

 private:
  std::filesystem::path output_, target_, temporary_;
  Kind kind_;
  bool armed_ = true;
};

/// 0 or errno: EEXIST where `to` is there. A file system without RENAME_NOREPLACE gets a hard link, which does not
/// replace either.
int rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) noexcept;
/// Writes all of the file that StagedOutput::path() names. @throws Error kEnvironment.
void write_staged(const std::filesystem::path& staged, std::string_view bytes);

/// As check_output for a folder. With `force` it replaces only a folder that holds a JSON file `record`, one that was
/// made by a command of this program, and no file but those that its `files` lists: the others are the user's.
/// @throws Error kUsage, kConflict naming such files, kEnvironment.
void check_output_folder(const std::filesystem::path& output, bool force, std::string_view record);

/// The files in a folder and its subfolders, by their paths in it, in order.
std::vector<std::string> files_of_folder(const std::filesystem::path& folder);

}  // namespace kvs
