// SPDX-License-Identifier: Apache-2.0
#include "io/dying_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace kvs::inline io {
namespace {

struct Files {
  pid_t owner = ::getpid();
  std::vector<std::string> paths;
};

/// Never destroyed, because it is read while the program ends.
Files& files() {
  static auto& named = *new Files;
  return named;
}

/// Allocates no C++ memory, which may have run out.
void remove_folder(const char* path) noexcept {
  DIR* const folder = ::opendir(path);
  if (folder == nullptr) return;
  while (const dirent* const entry = ::readdir(folder)) (void)::unlinkat(::dirfd(folder), entry->d_name, 0);
  ::closedir(folder);
  ::rmdir(path);
}

}  // namespace

void remove_with_program(const std::filesystem::path& path) { files().paths.push_back(path.native()); }
void forget_with_program(const std::filesystem::path& path) noexcept { std::erase(files().paths, path.native()); }

void remove_files_of_dying_program() noexcept {
  if (files().owner != ::getpid()) return;
  const std::vector<std::string>& paths = files().paths;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path)
    if (::unlink(path->c_str()) != 0) remove_folder(path->c_str());
}

}  // namespace kvs::inline io
