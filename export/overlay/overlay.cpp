// SPDX-License-Identifier: Apache-2.0
#include "export/overlay/overlay.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/nearest.h"
#include "io/digest.h"
#include "io/file.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxOverlayFile = std::size_t{256} << 20;

fs::path kept_name(fs::path file) { return file += ".kvspectrum-original"; }
/// Returns a name next to the manifest's, so that the lock of the next command removes what a killed write leaves.
fs::path new_name(const fs::path& file) {
  return file.parent_path() / (std::string(kOverlayRecord) + "." + file.filename().string());
}
bool is_present(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }

void expect_digest(const fs::path& file, const std::string& expected, const std::string& of) {
  if (const std::string found = sha256_of_file(file); found != expected)
    throw Error(ErrorCode::kConflict, file.string(),
                "found SHA-256 " + found + ", expected " + expected + ", that of " + of);
}

/// Returns the layer of a tensor named …layers.N.….
std::size_t layer_of(const StoredTensor& tensor, const fs::path& file) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = tensor.name.find(kLayers);
  const std::string_view number =
      at == std::string::npos ? std::string_view() : std::string_view(tensor.name).substr(at + kLayers.size());
  std::size_t layer = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), layer).ec != std::errc())
    throw Error(ErrorCode::kInput, file.string() + ": " + printable(tensor.name, 120), "expected a layer in the name");
  return layer;
}

/// Checks that the overlay has a pair of scales for exactly the layers that it states.
void check_pairs(const OverlayManifest& manifest, const fs::path& file) {
  const auto archive = open_safetensors(file);
  std::map<std::size_t, std::set<std::string>> pairs;
  for (const StoredTensor& tensor : archive->tensors()) {
    const std::string side = tensor.name.substr(tensor.name.rfind('.') + 1);
    if (side != "k_scale" && side != "v_scale")
      throw Error(ErrorCode::kInput, file.string() + ": " + printable(tensor.name, 120), "expected k_scale or v_scale");
    pairs[layer_of(tensor, file)].insert(side);
  }
  for (const std::size_t layer : manifest.layers)
    if (pairs[layer].size() != 2)
      throw Error(ErrorCode::kInput, file.string() + ": layer " + std::to_string(layer),
                  "found no pair of scales, expected k_scale and v_scale");
  if (pairs.size() != manifest.layers.size() || archive->tensors().size() != 2 * pairs.size())
    throw Error(ErrorCode::kInput, file.string(),
                "found " + std::to_string(archive->tensors().size()) + " tensors, expected a pair for each of " +
                    std::to_string(manifest.layers.size()) + " layers");
}

/// Checks that the overlay is for the model's layers and weights.
void check_model(const OverlayManifest& manifest, const fs::path& record, const ModelSource& model) {
  std::vector<std::size_t> stated;
  std::ranges::set_union(manifest.layers, manifest.skipped, std::back_inserter(stated));
  const std::vector<std::size_t> cached = model.config().cached_layers();
  for (const std::size_t layer : cached)
    if (!std::ranges::binary_search(stated, layer))
      throw Error(ErrorCode::kConflict, record.string() + ": /scales/layers",
                  "found no layer " + std::to_string(layer) + ", expected scales of every layer with a KV cache");
  if (stated != cached)
    throw Error(ErrorCode::kConflict, record.string() + ": /scales/layers",
                "found " + std::to_string(stated.size()) + " layers, expected the model's " +
                    std::to_string(cached.size()) + " layers with a KV cache");
  std::vector<std::string> files;
  files.reserve(manifest.weights.size());
  for (const auto& [name, digest] : manifest.weights) files.push_back(name);
  if (files != weight_files(model.archive()))
    throw Error(ErrorCode::kConflict, record.string() + ": /model/weights",
                "found " + listed(files) + ", expected the model's " + listed(weight_files(model.archive())));
  for (const auto& [name, digest] : manifest.weights)
    expect_digest(model.path() / name, digest, "the model that the overlay was made for");
}

/// Checks that the files to replace are those that the overlay was made from, and that no name is taken.
void check_places(const OverlayManifest& manifest, const fs::path& folder) {
  const auto expect_free = [](const fs::path& path) {
    if (is_present(path)) throw Error(ErrorCode::kConflict, path.string(), "found a file, expected none");
  };
  expect_free(folder / kOverlayScales);
  for (const auto& [name, file] : manifest.replaced) {
    expect_free(kept_name(folder / name));
    if (file.before)
      expect_digest(folder / name, *file.before, "the model that the overlay was made for");
    else
      expect_free(folder / name);
  }
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Error(ErrorCode::kEnvironment, to.string(), "cannot rename: " + error.message());
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw Error(ErrorCode::kEnvironment, path.string(), "cannot remove: " + error.message());
}

/// Puts a file in place under its name, which may be a link: the link is replaced.
void put_file(const fs::path& path, const std::string& bytes) {
  remove_file(new_name(path));
  write_file_atomically(new_name(path), bytes, false);
  rename_file(new_name(path), path);
}

/// Keeps a file under another name: as a second link where the file system has them, so that it is never missing.
void keep_file(const fs::path& path) {
  std::error_code error;
  fs::create_hard_link(path, kept_name(path), error);
  if (error) rename_file(path, kept_name(path));
}

/// Checks that restore() destroys nothing but the overlay's own files.
void check_restorable(const OverlayManifest& manifest, const fs::path& folder) {
  const auto check_own = [](const fs::path& path, const std::string& after, const std::optional<std::string>& before) {
    if (!is_present(path)) return;
    const std::string found = sha256_of_file(path);
    if (found != after && (!before || found != *before))
      throw Error(ErrorCode::kConflict, path.string(), "found a file that has changed since the overlay was applied");
  };
  check_own(folder / kOverlayScales, manifest.scales_sha256, std::nullopt);
  for (const auto& [name, file] : manifest.replaced) {
    check_own(folder / name, file.after, file.before);
    if (!file.before) continue;
    const bool kept = is_present(kept_name(folder / name));
    expect_digest(kept ? kept_name(folder / name) : folder / name, *file.before, "the file before the overlay");
  }
}

void restore(const OverlayManifest& manifest, const fs::path& folder) {
  for (const auto& [name, file] : manifest.replaced) {
    const fs::path path = folder / name;
    remove_file(new_name(path));
    if (!file.before)
      remove_file(path);
    else if (is_present(kept_name(path)))
      rename_file(kept_name(path), path);
    remove_file(kept_name(path));  // rename() of two links to one file leaves both
  }
  remove_file(new_name(folder / kOverlayScales));
  remove_file(folder / kOverlayScales);
  sync_directory(folder);
  remove_file(folder / kOverlayRecord);
  sync_directory(folder);
}

}  // namespace

OverlayManifest apply_overlay(const fs::path& overlay, const ModelSource& model) {
  const fs::path& folder = model.path();
  OverlayManifest manifest = read_manifest(overlay);
  refuse_overlaid(folder);
  expect_digest(overlay / kOverlayScales, manifest.scales_sha256, "the manifest");
  check_pairs(manifest, overlay / kOverlayScales);
  std::map<std::string, std::string> contents{
      {kOverlayScales, read_text_file(overlay / kOverlayScales, kMaxOverlayFile)}};
  for (const auto& [name, file] : manifest.replaced) {
    expect_digest(overlay / name, file.after, "the manifest");
    contents[name] = read_text_file(overlay / name, kMaxOverlayFile);
  }
  check_model(manifest, overlay / kOverlayRecord, model);
  check_places(manifest, folder);
  write_file_atomically(folder / kOverlayRecord, read_text_file(overlay / kOverlayRecord, kMaxOverlayFile), false);
  try {
    put_file(folder / kOverlayScales, contents.at(kOverlayScales));
    for (const auto& [name, file] : manifest.replaced) {
      if (file.before) keep_file(folder / name);
      put_file(folder / name, contents.at(name));
    }
    sync_directory(folder);
  } catch (...) {
    restore(manifest, folder);
    throw;
  }
  return manifest;
}

OverlayManifest undo_overlay(const fs::path& folder) {
  if (!is_present(folder / kOverlayRecord))
    throw Error(ErrorCode::kInput, folder.string(),
                std::string("found no ") + kOverlayRecord + ", expected the folder of a model with an overlay");
  OverlayManifest manifest = read_manifest(folder);
  check_restorable(manifest, folder);
  restore(manifest, folder);
  return manifest;
}

}  // namespace kvs::inline exporting
