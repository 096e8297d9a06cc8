// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/model.h"

namespace kvs::inline exporting {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
/// The overlay's tensors, and its manifest: in its folder, and in the folder of a model that has the overlay.
inline constexpr const char* kOverlayScales = "model-kvscales.safetensors";
inline constexpr const char* kOverlayRecord = "kvspectrum-overlay.json";

/// The model of an overlay of scales, and the files that it changes.
struct OverlayManifest {
  /// A file of the model that the overlay replaces: SHA-256 before and after.
  struct Replaced {
    std::optional<std::string> before;  // nothing: the model has no such file
    std::string after;
  };
  std::string tool_version;
  std::string model_sha256;                    // of the tensors in use
  std::optional<std::string> revision;         // of the model in the Hugging Face hub
  std::map<std::string, std::string> weights;  // SHA-256 of the model's safetensors files
  std::string scales_sha256;
  std::vector<std::size_t> layers;   // with scales, ascending
  std::vector<std::size_t> skipped;  // with a KV cache, left at 16 bits
  std::map<std::string, Replaced> replaced;

  Json to_json() const;
};

/// Returns the manifest of an overlay of `model` whose files are in `folder`. Cost: reads the model's files once.
OverlayManifest manifest_of(const ModelSource& model, const std::filesystem::path& folder,
                            std::vector<std::size_t> layers, std::vector<std::size_t> skipped,
                            std::string tool_version);
/// Reads kvspectrum-overlay.json of a folder. A manifest names no file but those that an overlay may replace, and
/// weights by plain names. @throws Error kInput
OverlayManifest read_manifest(const std::filesystem::path& folder);
/// @throws Error kConflict if the model's folder has an overlay
void refuse_overlaid(const std::filesystem::path& folder);
/// Returns the names of the files that hold the model's tensors.
std::vector<std::string> weight_files(const TensorArchive& archive);

}  // namespace kvs::inline exporting
