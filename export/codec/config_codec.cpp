// SPDX-License-Identifier: Apache-2.0
#include "export/codec/config_codec.h"

#include <charconv>
#include <utility>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/transform/config.h"
#include "core/error.h"
#include "export/codec/row_codec.h"
#include "export/codec/storage_codec.h"

namespace kvs::inline exporting {
namespace {

StreamId id_of(const std::string& digits) {
  StreamId id{};
  for (std::size_t n = 0; n < id.size(); ++n)
    std::from_chars(digits.data() + 2 * n, digits.data() + 2 * n + 2, id[n], 16);
  return id;
}

/// The rotations of a model's layers: layers of a kind share one.
using Ropes = std::map<std::size_t, std::shared_ptr<const KeyRope>>;

std::shared_ptr<const KeyRope> rope_of(const ModelRecord& model, std::size_t layer, Ropes& ropes,
                                       const std::string& where) {
  const ModelRecord::Rope& rope = model.rope;
  const std::size_t kind = layer < rope.layer_kinds.size() ? rope.layer_kinds[layer] : rope.frequencies.size();
  if (kind >= rope.frequencies.size() || kind >= rope.factors.size() ||
      2 * rope.frequencies[kind].size() > model.head_dim.of(layer) || !(rope.factors[kind] > 0))
    throw Error(ErrorCode::kInput, where + ": /model/rope",
                "found no frequencies of layer " + std::to_string(layer) + " for at most its head_dim");
  std::shared_ptr<const KeyRope>& made = ropes[kind];
  if (!made) made = std::make_shared<KeyRope>(rope.frequencies[kind], rope.factors[kind]);
  return made;
}

std::shared_ptr<const GroupCodec> group_codec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape,
                                              std::vector<std::shared_ptr<const KeyRope>> ropes, const StreamId& id) {
  if (layer.form() == TransformForm::kStorage)
    return std::make_shared<StorageCodec>(ops, layer, shape, std::move(ropes), id);
  return std::make_shared<RowCodec>(ops, layer, shape, std::move(ropes), id);
}

}  // namespace

ConfigCodec::ConfigCodec(const std::filesystem::path& path, int threads, const CheckModel& check)
    : where_(path.string()) {
  const Json config = read_config(path);
  if (config.at("method") != "transform")
    throw Error(ErrorCode::kInput, where_ + ": /method",
                "found " + config.at("method").get<std::string>() + ", expected transform");
  const auto model = from_json<ModelRecord>(JsonCursor(config.at("model"), where_));
  check(config, model);
  digest_ = config.at("files").at(0).at("sha256").get<std::string>();
  CpuCoding ops(threads);
  Ropes ropes;
  for (const TransformLayer& layer : read_transform_layers(config, path)) {
    const TransformShape shape{model.kv_heads.of(layer.layer), model.head_dim.of(layer.layer)};
    std::vector<std::shared_ptr<const KeyRope>> of_layers{rope_of(model, layer.layer, ropes, where_)};
    for (const std::size_t other : layer.others) of_layers.push_back(rope_of(model, other, ropes, where_));
    const auto group = group_codec(ops, layer, shape, std::move(of_layers), id_of(digest_));
    for (const std::uint32_t of_group : group->layers()) groups_[of_group] = group;
  }
}

const GroupCodec& ConfigCodec::group(std::uint32_t layer) const {
  const auto found = groups_.find(layer);
  if (found == groups_.end())
    throw Error(ErrorCode::kUsage, "layer", "found " + std::to_string(layer) + ", expected one that the config codes");
  return *found->second;
}

const GroupCodec& ConfigCodec::of_stream(std::span<const std::byte> stream) const {
  const std::uint32_t layer = read_head(stream).layer;
  if (!codes(layer))
    throw Error(ErrorCode::kData, "stream: layer",
                "found " + std::to_string(layer) + ", expected one that the config codes");
  return group(layer);
}

}  // namespace kvs::inline exporting
