// SPDX-License-Identifier: Apache-2.0
#include "model/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace kvs::inline model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelPrefix = "models--";

/// Returns an environment variable; empty if it is not set.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets a variable
  return value == nullptr ? std::string() : value;
}

/// Returns the folder in which huggingface_hub keeps downloads.
fs::path cache_folder() {
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const std::string caches = variable("XDG_CACHE_HOME");
  return (caches.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(caches)) / "huggingface" / "hub";
}

/// Returns the folders in `folder` whose names begin with `prefix`, sorted; none if `folder` cannot be read.
std::vector<fs::path> folders_of(const fs::path& folder, std::string_view prefix = {}) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const bool is_folder = entry->is_directory(error);
    if (is_folder && entry->path().filename().native().starts_with(prefix)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

/// Returns the snapshot in `models--OWNER--NAME`: that of branch main, otherwise the first; empty if there is none.
fs::path snapshot_of(const fs::path& model) {
  std::string revision;
  std::ifstream(model / "refs" / "main") >> revision;
  std::error_code error;
  fs::path main = model / "snapshots" / revision;
  if (!revision.empty() && fs::is_directory(main, error)) return main;
  const std::vector<fs::path> snapshots = folders_of(model / "snapshots");
  return snapshots.empty() ? fs::path() : snapshots.front();
}

/// Returns true if `text` may be the name of an owner or a model.
bool is_hub_name(std::string_view text) {
  constexpr std::size_t kMaxCharacters = 96;
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !text.empty() && text.size() <= kMaxCharacters && text.find_first_not_of(kCharacters) == text.npos &&
         text.front() != '.' && text.front() != '-';
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& found, const fs::path& snapshot) {
  throw Error(ErrorCode::kInput, folder.string(),
              "found " + found + ", expected a snapshot of it: " + snapshot.string());
}

}  // namespace

std::string hub_advice(const fs::path& name) {
  const std::string& text = name.native();
  const std::size_t slash = text.find('/');
  if (slash == text.npos || !is_hub_name(text.substr(0, slash)) || !is_hub_name(text.substr(slash + 1))) return {};
  std::string folder(kModelPrefix);
  folder.append(text, 0, slash).append("--").append(text, slash + 1);
  const fs::path snapshot = snapshot_of(cache_folder() / folder);
  if (!snapshot.empty()) return "; the hub's model of this name is in " + snapshot.string();
  return "; the hub's cache has no model of this name, fetch it first: hf download " + text + " --local-dir FOLDER";
}

void refuse_hub_cache(const fs::path& folder) {
  const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
  if (const fs::path snapshot = snapshot_of(whole); !snapshot.empty())
    refuse(folder, "the hub's cache of a model", snapshot);
  if (whole.filename() == "snapshots" && !folders_of(whole).empty())
    refuse(folder, "snapshots in the hub's cache of a model", snapshot_of(whole.parent_path()));
  for (const fs::path& cache : {whole, whole / "hub"}) {
    const std::vector<fs::path> models = folders_of(cache, kModelPrefix);
    const auto filled = std::ranges::find_if(models, [](const fs::path& model) { return !snapshot_of(model).empty(); });
    if (filled != models.end())
      refuse(folder, "the hub's cache of " + std::to_string(models.size()) + " models", snapshot_of(*filled));
  }
}

}  // namespace kvs::inline model
