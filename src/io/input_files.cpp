// SPDX-License-Identifier: Apache-2.0
#include "io/input_files.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "io/descriptor.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardInput = "standard input";

/// Visits the entries of `folder`. With `Walk` = fs::recursive_directory_iterator, also visits its subfolders.
template <class Walk, class Visit>
void visit_entries(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  for (Walk entry(folder, fs::directory_options::skip_permission_denied, error), end; !error && entry != end;
       entry.increment(error))
    visit(entry->path());
  if (error && code_of_read_errno(error.value()) == ErrorCode::kEnvironment)
    throw_errno(ErrorCode::kEnvironment, folder, "cannot be read", error.value());
}

}  // namespace

void InputFiles::add_status(const struct stat& status, const std::string& name) {
  if (S_ISREG(status.st_mode)) files_.emplace(Identity{status.st_dev, status.st_ino}, name);
}

void InputFiles::add(const fs::path& path) {
  struct stat status {};
  if (!find_status(path, status)) return;
  add_status(status, path.native());
  if (S_ISDIR(status.st_mode))
    visit_entries<fs::directory_iterator>(path, [&](const fs::path& file) {
      struct stat found {};
      if (find_status(file, found)) add_status(found, file.native());
    });
}

void InputFiles::add_texts(const fs::path& path) {
  add(path);
  struct stat status {};
  if (find_status(path, status) && S_ISDIR(status.st_mode))
    text_folders_.emplace(Identity{status.st_dev, status.st_ino}, path.native());
}

void InputFiles::add_model(const fs::path& path) {
  struct stat status {};
  if (!find_status(path, status)) return;
  if (!S_ISDIR(status.st_mode)) {
    add_status(status, path.native());
    add_gguf_parts(path);
    return;
  }
  model_folders_.emplace(Identity{status.st_dev, status.st_ino}, path.native());
  visit_entries<fs::recursive_directory_iterator>(path, [&](const fs::path& file) {
    struct stat found {};
    if (find_status(file, found)) add_status(found, file.native());
  });
}

/// Parts are named STEM-00001-of-00003.gguf.
void InputFiles::add_gguf_parts(const fs::path& path) {
  constexpr std::size_t kEnding = std::string_view("-00001-of-00003.gguf").size(),
                        kCount = std::string_view("-of-00003.gguf").size();
  const std::string name = path.filename().native();
  if (name.size() <= kEnding || name.compare(name.size() - kCount, 4, "-of-") != 0) return;
  const std::string stem = name.substr(0, name.size() - kEnding), count = name.substr(name.size() - kCount);
  visit_entries<fs::directory_iterator>(directory_of(path), [&](const fs::path& file) {
    const std::string other = file.filename().native();
    struct stat found {};
    if (other.size() == name.size() && other.starts_with(stem) && other.ends_with(count) && find_status(file, found))
      add_status(found, file.native());
  });
}

void InputFiles::add_standard_input() {
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) == 0) add_status(status, kStandardInput);
}

/// Looks for the inputs above the folder, instead of walking the folder, which may be a whole disk.
void InputFiles::check_holds_none(const fs::path& folder) const {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error) return;
  for (const auto& [identity, name] : files_) {
    const fs::path file = fs::canonical(name == kStandardInput ? "/dev/stdin" : name, error);
    if (!error && std::ranges::mismatch(whole, file).in1 == whole.end())
      throw Error(ErrorCode::kUsage, folder.native(), "the output is a folder that holds the input " + name);
  }
}

void InputFiles::check_spared(const fs::path& output) const {
  struct stat status {};
  if (find_status(output, status)) {
    const auto found = files_.find({status.st_dev, status.st_ino});
    if (found != files_.end())
      throw Error(ErrorCode::kUsage, output.native(), "the output is the input " + found->second);
    if (S_ISDIR(status.st_mode)) check_holds_none(output);
  }
  check_lies_outside(output);
}

void InputFiles::check_lies_outside(const fs::path& output) const {
  const auto refuse = [&](const std::string& what, const std::string& name) {
    throw Error(ErrorCode::kUsage, output.native(),
                "the output lies in the folder of " + what + name + ", expected another folder");
  };
  std::error_code error;
  const fs::path path = full_output_path(output, error);
  struct stat status {};
  for (fs::path folder = path; !error && folder.has_relative_path();) {
    folder = folder.parent_path();
    if (!find_status(folder, status)) continue;
    const Identity identity{status.st_dev, status.st_ino};
    if (const auto model = model_folders_.find(identity); model != model_folders_.end())
      refuse("the model ", model->second);
    if (folder != path.parent_path()) continue;  // only files directly in a text folder are read
    if (const auto texts = text_folders_.find(identity); texts != text_folders_.end()) refuse("texts ", texts->second);
  }
}

}  // namespace kvs::inline io
