// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace kvs::inline io {

/// The files that a command reads, identified by device and inode, so that none becomes an output under any name.
/// Missing files are skipped: their readers report them.
class InputFiles {
 public:
  /// Adds a file, or the files of a folder.
  void add(const std::filesystem::path& path);
  /// Adds texts: a file, or a folder whose files are all texts. An output in that folder would become a text of the
  /// next run, or of this run when it is resumed.
  void add_texts(const std::filesystem::path& path);
  /// Adds a model: a folder, which no output may lie in, with its links' targets; or a GGUF file with its other parts.
  void add_model(const std::filesystem::path& path);
  /// Adds standard input if it is a file.
  void add_standard_input();

  /// @throws Error kUsage if `output` is an input, holds one, or lies in the folder of a model or of texts.
  void check_spared(const std::filesystem::path& output) const;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  void add_status(const struct stat& status, const std::string& name);
  void check_holds_none(const std::filesystem::path& folder) const;
  void check_lies_outside(const std::filesystem::path& output) const;
  void add_gguf_parts(const std::filesystem::path& path);

  std::map<Identity, std::string> files_, model_folders_, text_folders_;
};

}  // namespace kvs::inline io
