// SPDX-License-Identifier: Apache-2.0
#include "export/overlay/manifest.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "kvspectrum-overlay";
constexpr std::size_t kMaxManifest = std::size_t{1} << 20, kMaxFiles = 4096;
constexpr std::int64_t kMaxLayers = 1 << 16;
constexpr std::array<std::string_view, 3> kReplaceable{"config.json", "hf_quant_config.json", kIndexFile};

std::string digest_in(const JsonCursor& value) {
  const std::string& text = value.string();
  const bool is_hex =
      std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (text.size() != 64 || !is_hex) value.fail("a SHA-256 in 64 lower-case hexadecimal digits");
  return text;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && name.ends_with(".safetensors") && name != kOverlayScales;
}

std::map<std::string, std::string> weights_in(const JsonCursor& files) {
  std::map<std::string, std::string> weights;
  const std::vector<std::string> names = files.keys();
  if (names.empty() || names.size() > kMaxFiles) files.fail("1 to " + std::to_string(kMaxFiles) + " files");
  for (const std::string& name : names) {
    if (!is_plain_name(name)) files.at(name).fail("a plain name of a safetensors file as the key");
    weights[name] = digest_in(files.at(name));
  }
  return weights;
}

std::map<std::string, OverlayManifest::Replaced> replaced_in(const JsonCursor& files) {
  std::map<std::string, OverlayManifest::Replaced> replaced;
  for (const std::string& name : files.keys()) {
    const JsonCursor file = files.at(name);
    if (std::ranges::find(kReplaceable, name) == kReplaceable.end())
      file.fail("a file that an overlay may replace: config.json, hf_quant_config.json or the index");
    OverlayManifest::Replaced& one = replaced[name];
    one.after = digest_in(file.at("after"));
    if (file.has("before"))
      one.before = digest_in(file.at("before"));
    else if (name != kIndexFile)
      file.fail("the digest before");
  }
  if (!replaced.contains(kIndexFile)) files.fail("the index among the replaced files");
  return replaced;
}

std::vector<std::size_t> layers_in(const JsonCursor& list) {
  std::vector<std::size_t> layers;
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    const auto layer = static_cast<std::size_t>(list.at(n).integer(0, kMaxLayers));
    if (!layers.empty() && layer <= layers.back()) list.at(n).fail("ascending layers");
    layers.push_back(layer);
  }
  return layers;
}

/// Returns the revision of a model in the hub's cache: …/snapshots/REVISION.
std::optional<std::string> revision_of(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path own = whole.has_filename() ? whole : whole.parent_path();
  if (own.parent_path().filename() != "snapshots") return std::nullopt;
  return own.filename().string();
}

}  // namespace

Json OverlayManifest::to_json() const {
  Json weights_json = Json::object(), replaced_json = Json::object();
  for (const auto& [name, digest] : weights) weights_json[name] = digest;
  for (const auto& [name, file] : replaced)
    replaced_json[name] = {{"before", file.before ? Json(*file.before) : Json()}, {"after", file.after}};
  return {{"format", kFormat},
          {"version", 1},
          {"tool_version", tool_version},
          {"engine", "vllm"},
          {"model",
           {{"sha256", model_sha256}, {"revision", revision ? Json(*revision) : Json()}, {"weights", weights_json}}},
          {"scales",
           {{"file", kOverlayScales}, {"sha256", scales_sha256}, {"layers", layers}, {"skipped_layers", skipped}}},
          {"replaces", replaced_json}};
}

OverlayManifest manifest_of(const ModelSource& model, const fs::path& folder, std::vector<std::size_t> layers,
                            std::vector<std::size_t> skipped, std::string tool_version) {
  OverlayManifest manifest{.tool_version = std::move(tool_version),
                           .model_sha256 = model.sha256(),
                           .revision = revision_of(model.path()),
                           .weights = {},
                           .scales_sha256 = sha256_of_file(folder / kOverlayScales),
                           .layers = std::move(layers),
                           .skipped = std::move(skipped),
                           .replaced = {}};
  for (const std::string& name : weight_files(model.archive()))
    manifest.weights[name] = sha256_of_file(model.path() / name);
  for (const std::string_view each : kReplaceable) {
    const std::string name(each);
    if (!fs::exists(folder / name)) continue;
    OverlayManifest::Replaced& one = manifest.replaced[name];
    one.after = sha256_of_file(folder / name);
    if (fs::exists(model.path() / name)) one.before = sha256_of_file(model.path() / name);
  }
  return manifest;
}

OverlayManifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kOverlayRecord;
  const Json json = parse_json(read_text_file(path, kMaxManifest), path.string());
  const JsonCursor root(json, path.string());
  if (root.at("format").string() != kFormat) root.at("format").fail(kFormat);
  if (root.at("version").integer() != 1)
    throw Error(ErrorCode::kUnsupported, root.at("version").place(),
                "found " + describe_json(root.at("version").value()) + ", expected 1");
  const JsonCursor model = root.at("model"), scales = root.at("scales");
  if (scales.at("file").string() != kOverlayScales) scales.at("file").fail(kOverlayScales);
  OverlayManifest manifest{.tool_version = root.at("tool_version").string(),
                           .model_sha256 = digest_in(model.at("sha256")),
                           .revision = std::nullopt,
                           .weights = weights_in(model.at("weights")),
                           .scales_sha256 = digest_in(scales.at("sha256")),
                           .layers = layers_in(scales.at("layers")),
                           .skipped = layers_in(scales.at("skipped_layers")),
                           .replaced = replaced_in(root.at("replaces"))};
  if (model.has("revision")) manifest.revision = model.at("revision").string();
  return manifest;
}

void refuse_overlaid(const fs::path& folder) {
  const fs::path record = folder / kOverlayRecord;
  if (fs::exists(fs::symlink_status(record)))
    throw Error(ErrorCode::kConflict, record.string(),
                "found an overlay, expected a model without one: `kvcalibrate overlay undo` removes it");
}

std::vector<std::string> weight_files(const TensorArchive& archive) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : archive.tensors()) names.insert(archive.file_of(tensor).filename().string());
  return {names.begin(), names.end()};
}

}  // namespace kvs::inline exporting
