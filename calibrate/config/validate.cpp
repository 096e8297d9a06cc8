// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "caches/old_parameters.h"
#include "calibrate/config/config.h"
#include "calibrate/config/config_lists.h"
#include "calibrate/config/schema_check.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/layer_sizes.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMaximumBytes = 64UL << 20;

void check_files(const Json& config, const std::filesystem::path& path) {
  const JsonCursor files = JsonCursor(config, path.string()).at("files");
  for (std::size_t n = 0; n < files.array_size(); ++n) {
    const std::string& name = files.at(n).at("path").string();
    if (name.find('\0') != std::string::npos) files.at(n).at("path").fail("a plain file name in the config's folder");
    const std::string digest = sha256_of_file(path.parent_path() / name);
    if (digest != files.at(n).at("sha256").string()) files.at(n).at("sha256").fail(digest + ", the file's digest");
  }
}

/// @throws Error kInput
CacheShape shape_of(const JsonCursor& model) {
  constexpr std::uint64_t kMost = 1 << 16;
  const std::uint64_t layers = model.at("layers").unsigned_integer(kMost);
  if (layers == 0) model.at("layers").fail("a number above 0");
  std::vector<bool> cached(layers, true);
  if (model.has("layers_without_cache")) {
    const JsonCursor without = model.at("layers_without_cache");
    for (std::size_t n = 0; n < without.array_size(); ++n) cached[without.at(n).unsigned_integer(layers - 1)] = false;
    if (std::ranges::find(cached, true) == cached.end()) without.fail("some layer less");
  }
  const auto sizes = [&](const char* name) {
    LayerSizes found = LayerSizes::from_json(model.at(name), kMost);
    if (found.is_list()) expect_length(model.at(name), layers, "layers");
    for (std::size_t layer = 0; layer < layers; ++layer)
      if (cached[layer] && found.of(layer) == 0) model.at(name).fail("numbers above 0 for layers with a KV cache");
    return found;
  };
  const LayerSizes kv_heads = sizes("kv_heads"), head_dim = sizes("head_dim");
  CacheShape shape{.layers = std::vector<LayerShape>(layers)};
  for (std::size_t layer = 0; layer < layers; ++layer)
    if (cached[layer]) shape.layers[layer] = {.kv_heads = kv_heads.of(layer), .head_dim = head_dim.of(layer)};
  return shape;
}

/// @throws Error kInput like the method's own reader, which checks more than the schema.
void check_parameters(const Method& method, const JsonCursor& root, const std::string& where) {
  const JsonCursor values = root.at("parameters");
  (void)values.keys();  // an object
  const CacheShape shape = shape_of(root.at("model"));
  Parameters parameters({{values.value(), where + ": /parameters/", ErrorCode::kInput}}, shape);
  (void)make_cache(method, parameters, shape);
}

}  // namespace

CacheShape recorded_shape(const Json& config) { return shape_of(JsonCursor(config, "config").at("model")); }

void check_config(const Json& config, const std::string& where) {
  const JsonCursor root(config, where);
  if (root.at("format").string() != "kvspectrum-config") root.at("format").fail("\"kvspectrum-config\"");
  const std::int64_t version = root.at("version").integer(1);
  if (version > kVersion)
    throw Error(ErrorCode::kUnsupported, where + ": /version",
                "found " + std::to_string(version) + ", expected at most " + std::to_string(kVersion));
  const std::string& name = root.at("method").string();
  const Method* const method = find_method(name);
  if (method != nullptr && method->make != nullptr) check_parameters(*method, root, where);
  check_schema(config, where);
  check_config_lists(config, where);
  if (method->check != nullptr) method->check(config, where);
}

Json read_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  Json config = parse_json(read_text_file(path, kMaximumBytes), where);
  rename_old_parameters(config, where);
  check_config(config, where);
  check_files(config, path);
  const Method& method = *find_method(config.at("method").get<std::string>());
  if (method.check_tensors != nullptr) method.check_tensors(config, path);
  return config;
}

}  // namespace kvs::inline calibrate
