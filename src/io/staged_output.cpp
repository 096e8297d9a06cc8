// SPDX-License-Identifier: Apache-2.0
#include "io/staged_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/digest.h"
#include "io/dying_program.h"
#include "io/file.h"
#include "io/json.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

/// Shortens a long name to its start, by which OutputLock finds it, and a checksum: names may differ only at the end.
std::string temporary_name(const fs::path& output) {
  constexpr std::size_t kMaxKept = 200;
  std::string name = output.filename().native();
  if (name.size() > kMaxKept) {
    const std::uint32_t checksum = crc32c(std::as_bytes(std::span(name)));
    name.resize(kMaxKept);
    name += "." + std::to_string(checksum);
  }
  return "." + name + "." + std::to_string(::getpid()) + ".tmp";
}

/// Returns 0 or errno.
int create(const fs::path& path, StagedOutput::Kind kind) {
  if (kind == StagedOutput::Kind::kFolder) return ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  return open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666).is_open() ? 0 : errno;
}

/// Returns 0 or errno. A folder cannot be renamed over a folder that holds files, so the two are exchanged.
int rename_over(const fs::path& from, const fs::path& to, StagedOutput::Kind kind) {
  if (kind == StagedOutput::Kind::kFolder) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return 0;
    if (errno != ENOENT) return errno;
  }
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

void sync_file(const fs::path& path) {
  const Descriptor file = open_descriptor(path, O_RDONLY | O_NOFOLLOW);
  if (!file.is_open() || ::fsync(file.get()) != 0) throw_errno(ErrorCode::kEnvironment, path, "cannot sync", errno);
}

constexpr std::size_t kMaxNamed = 3;

/// Returns the files of `folder` that its record at `path` does not list (all files if it lists none).
std::vector<std::string> files_beside(const fs::path& folder, const fs::path& path) {
  constexpr std::size_t kLimit = std::size_t{16} << 20;
  const Json record = parse_json(read_text_file(path, kLimit), path.string(), {.bytes = kLimit});
  const JsonCursor root(record, path.string());
  std::set<std::string> own{path.filename().native()};
  for (std::size_t i = 0; root.has("files") && i < root.at("files").array_size(); ++i)
    own.insert(root.at("files").at(i).string());
  std::vector<std::string> strangers = files_of_folder(folder);
  std::erase_if(strangers, [&](const std::string& name) { return own.contains(name); });
  for (std::string& name : strangers) name = printable(name, 100);
  return strangers;
}

}  // namespace

int rename_to_new(const fs::path& from, const fs::path& to) noexcept {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

StagedOutput::StagedOutput(const fs::path& output, Kind kind)
    : output_(output),
      target_(resolve_output(output)),
      temporary_(directory_of(target_) / temporary_name(target_)),
      kind_(kind) {
  remove_with_program(temporary_);  // may lack memory, so it comes before the file exists
  int error = create(temporary_, kind);
  // The name carries this process's id, so an existing file was left by a dead process with that id.
  if (error == EEXIST) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
    error = create(temporary_, kind);
  }
  if (error == 0) return;
  forget_with_program(temporary_);
  throw_errno(ErrorCode::kEnvironment, temporary_, "cannot create", error);
}

StagedOutput::~StagedOutput() {
  std::error_code ignored;
  if (armed_) fs::remove_all(temporary_, ignored);
  forget_with_program(temporary_);
}

void StagedOutput::commit(bool force) {
  if (kind_ == Kind::kFile) {
    sync_file(temporary_);
  } else {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary_))
      entry.is_directory() ? sync_directory(entry.path()) : sync_file(entry.path());
    sync_directory(temporary_);
  }
  const int error = force ? rename_over(temporary_, target_, kind_) : rename_to_new(temporary_, target_);
  if (error == EEXIST && !force) refuse_existing(output_, kind_ == Kind::kFile ? "file" : "folder");
  if (error != 0) throw_errno(ErrorCode::kEnvironment, output_, "cannot put the new output in place", error);
  sync_directory(directory_of(target_));
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // removes a folder that was replaced
  armed_ = false;
}

void write_staged(const fs::path& staged, std::string_view bytes) {
  const Descriptor file = open_descriptor(staged, O_WRONLY | O_NOFOLLOW);
  if (!file.is_open()) throw_errno(ErrorCode::kEnvironment, staged, "cannot open", errno);
  write_at(file.get(), staged, std::as_bytes(std::span(bytes)), 0);
}

void check_output_folder(const fs::path& output, bool force, std::string_view record) {
  const fs::path resolved = resolve_output(output);
  struct stat status {};
  if (!find_link_status(resolved, status)) return check_output(resolved, force);
  if (!fs::is_directory(resolved))
    throw Error(ErrorCode::kEnvironment, output.native(), "found no folder under this name, expected a folder");
  if (!force) refuse_existing(output, "folder");
  const fs::path path = resolved / record;
  if (!fs::exists(path))
    throw Error(
        ErrorCode::kConflict, output.native(),
        "found a folder without " + std::string(record) + ", expected one that this program wrote, or a free name");
  const std::vector<std::string> strangers = files_beside(resolved, path);
  if (strangers.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < strangers.size() && i < kMaxNamed; ++i) names += (i == 0 ? "" : ", ") + strangers[i];
  if (strangers.size() > kMaxNamed) names += " and " + std::to_string(strangers.size() - kMaxNamed) + " more";
  throw Error(
      ErrorCode::kConflict, output.native(),
      "found " + names + ", which " + std::string(record) +
          " does not list as written, expected only files that it lists: move the others, or choose a free name");
}

std::vector<std::string> files_of_folder(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_symlink() || !entry.is_directory()) names.push_back(entry.path().lexically_relative(folder).native());
  std::ranges::sort(names);
  return names;
}

}  // namespace kvs::inline io
