// SPDX-License-Identifier: Apache-2.0
#include "run/finished.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "core/error.h"
#include "draw/png.h"
#include "io/digest.h"
#include "io/file.h"
#include "run/kept_state.h"
#include "run/progress.h"
#include "version.h"

namespace kvs::inline run {
namespace {

namespace fs = std::filesystem;

/// The superblock of version 0, which all files of the programs have, holds the file's size.
bool is_whole_hdf5(std::string_view bytes) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  constexpr std::size_t kEnd = 40;
  std::uint64_t size = 0;
  if (!bytes.starts_with(kSignature) || bytes.size() < kEnd + sizeof size || bytes[kSignature.size()] != 0)
    return false;
  std::memcpy(&size, bytes.data() + kEnd, sizeof size);
  return bytes.size() >= size;
}

bool is_whole(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) == 0 || error) return false;
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const fs::path extension = path.extension();
  if (extension == ".svg" || extension == ".png") return draw::is_whole_figure(bytes);
  return extension != ".h5" || is_whole_hdf5(bytes);
}

/// A PNG may be absent, because some systems cannot make one.
bool is_absent_picture(const fs::path& path) {
  std::error_code error;
  return path.extension() == ".png" && !fs::exists(fs::symlink_status(path, error));
}

/// Returns the first damaged file of those whose SHA-256 a config holds in `files`.
std::optional<fs::path> find_damaged_file(const fs::path& config, const Json& json) {
  if (!json.is_object() || !json.contains("files") || !json.at("files").is_array()) return std::nullopt;
  for (const Json& file : json.at("files")) {
    if (!file.is_object() || !file.contains("path") || !file.at("path").is_string()) continue;
    const fs::path path = config.parent_path() / file.at("path").get<std::string>();
    std::error_code error;
    if (!fs::is_regular_file(path, error) || file.value("sha256", Json()) != sha256_of_file(path)) return path;
  }
  return std::nullopt;
}

/// Returns `path` itself, or a file whose SHA-256 it holds, if damaged; otherwise nullopt.
std::optional<fs::path> find_damage(const fs::path& path) {
  if (!is_whole(path)) return path;
  if (path.extension() != ".json") return std::nullopt;
  const MappedFile file(path);
  Json json;
  try {
    json = parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.native());
  } catch (const Error&) {
    return path;
  }
  return find_damaged_file(path, json);
}

/// Returns the first missing or damaged file of a finished run, or nullopt.
/// @param main  the output that describes the run, already read as `json`
std::optional<fs::path> find_damaged_output(const fs::path& main, const Json& json, std::span<const fs::path> others) {
  for (const fs::path& path : others)
    if (path != main && !is_absent_picture(path))
      if (auto damaged = find_damage(path)) return damaged;
  return find_damaged_file(main, json);
}

bool was_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                  const std::function<bool(const Json&)>& same, const OtherOutputs& others) {
  if (run.force || !std::filesystem::exists(main)) return false;
  for (const char* ending : {".journal", ".checkpoint.0", ".checkpoint.1"})
    if (run.resume && std::filesystem::exists(kept_path(state, ending))) return false;
  const Json json = run.resume ? parse_json(read_text_file(main, kMaxResultBytes), main.string()) : Json();
  if (!run.resume || !same(json)) {
    check_output(main, false);
    return false;
  }
  const auto files = others ? others(json) : std::vector<std::filesystem::path>();
  const auto damaged = find_damaged_output(main, json, files);
  if (damaged)
    print_note("note: " + main.string() + ": finished before, but " + damaged->string() +
                   " is missing or damaged: the run starts anew",
               run.quiet);
  return !damaged;
}

}  // namespace

bool is_finished(const std::filesystem::path& main, const std::filesystem::path& state, const RunOptions& run,
                 const std::function<bool(const Json&)>& same, const OtherOutputs& others) {
  return run.ranks->broadcast(Json(run.is_root() && was_finished(main, state, run, same, others))).get<bool>();
}

bool is_of_run(const Json& output, const std::string& provenance, const Options& options, const Json& identity) {
  const auto is = [&](const std::string& pointer, const Json& wanted) {
    const Json::json_pointer at(pointer);
    return output.contains(at) && output.at(at) == wanted;
  };
  for (const auto& [name, digest] : identity.items())
    if (name.ends_with("_sha256") && !is(name == "model_sha256" ? "/model/sha256" : provenance + '/' + name, digest))
      return false;
  if (identity.contains("bos") && !is(provenance + "/bos", identity.at("bos"))) return false;
  return is(provenance + "/command", options.command()) && is(provenance + "/tool_version", kToolVersion);
}

}  // namespace kvs::inline run
