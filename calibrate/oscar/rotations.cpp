// SPDX-License-Identifier: Apache-2.0
#include "calibrate/oscar/rotations.h"

#include <string>
#include <utility>

#include "calibrate/config/tensors.h"
#include "results/head.h"

namespace kvs::inline calibrate {
namespace {

std::string rotation_name(std::size_t layer, const char* side) {
  return "layers." + std::to_string(layer) + '.' + side + "_rotation";
}

}  // namespace

std::vector<OutputTensor> rotation_tensors(const std::vector<OscarRotations>& layers) {
  std::vector<OutputTensor> tensors;
  tensors.reserve(2 * layers.size());
  for (const OscarRotations& one : layers) {
    const std::vector<std::size_t> shape{one.kv_heads, one.head_dim, one.head_dim};
    tensors.push_back(held_tensor(rotation_name(one.layer, "key"), shape, one.keys));
    tensors.push_back(held_tensor(rotation_name(one.layer, "value"), shape, one.values));
  }
  return tensors;
}

std::vector<OscarRotations> read_rotations(const Json& config, const std::filesystem::path& path) {
  const auto model = from_json<ModelRecord>(JsonCursor(config, path.string()).at("model"));
  const std::filesystem::path file = path.parent_path() / config.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  std::vector<OscarRotations> layers;
  for (std::size_t layer = 0; layer < model.layers; ++layer) {
    if (!model.has_cache(layer)) continue;
    OscarRotations one{.layer = layer, .kv_heads = model.kv_heads.of(layer), .head_dim = model.head_dim.of(layer)};
    const std::vector<std::size_t> shape{one.kv_heads, one.head_dim, one.head_dim};
    one.keys = read(rotation_name(layer, "key"), shape);
    one.values = read(rotation_name(layer, "value"), shape);
    layers.push_back(std::move(one));
  }
  return layers;
}

std::size_t shared_bytes(const std::vector<OscarRotations>& layers) {
  std::size_t numbers = 0;
  for (const OscarRotations& one : layers) numbers += one.keys.size() + one.values.size();
  return numbers * sizeof(float);
}

}  // namespace kvs::inline calibrate
