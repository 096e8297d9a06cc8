#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace kvs {

/// The files that a command reads, known by device and inode, so that none of them becomes its output under any name.
/// What does not exist is passed over: whoever reads it says so.
class InputFiles {
 public:
  /// A file, or the files of a folder.
  void add(const std::filesystem::path& path);
  /// Texts: a file, or a folder, every file of which is one. An output there would be a text of the next run, or of
  /// this one when it is resumed.
  void add_texts(const std::filesystem::path& path);
  /// A model: its folder, in which no output may lie, and what its links lead to; or a GGUF file with its other parts.
  void add_model(const std::filesystem::path& path);
  /// Standard input, where it is a file.
  void add_standard_input();

  /// @throws Error kUsage if `output` is an input, a folder that holds one, or lies in the folder of a model or of
  ///         texts.
  void check_spared(const std::filesystem::path& output) const;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  void add_status(const struct stat& status, const std::string& name);
  void check_holds_none(const std::filesystem::path& folder) const;
  void check_lies_outside(const std::filesystem::path& output) const;
  void add_gguf_parts(const std::filesystem::path& path);

  std::map<Identity, std::string> files_, model_folders_, text_folders_;
};

}  // namespace kvs
