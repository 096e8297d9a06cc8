// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/config.h"

#include <algorithm>
#include <set>
#include <utility>

#include "calibrate/config/tensors.h"
#include "core/dtype.h"
#include "core/error.h"
#include "io/layer_sizes.h"

namespace kvs::inline calibrate {
namespace {

template <class Names>
std::size_t index_of(const Names& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

Json groups_json(const std::vector<KvtcGroup>& groups) {
  Json runs = Json::array();
  for (std::size_t first = 0, last = 0; first < groups.size(); first = last) {
    while (last < groups.size() && groups[last] == groups[first]) ++last;
    runs.push_back({{"size", groups[first].size},
                    {"type", kKvtcTypeNames[static_cast<std::size_t>(groups[first].type)]},
                    {"count", last - first}});
  }
  return runs;
}

/// Returns the values of keys, or of values, of a token in some layers.
std::size_t values_of(const JsonCursor& root, const std::vector<std::size_t>& layers) {
  const auto kv_heads = LayerSizes::from_json(root.at("model").at("kv_heads")),
             head_dim = LayerSizes::from_json(root.at("model").at("head_dim"));
  std::size_t sum = 0;
  for (const std::size_t layer : layers) sum += kv_heads.of(layer) * head_dim.of(layer);
  return sum;
}

/// @param most  components at most
std::vector<KvtcGroup> read_groups(const JsonCursor& runs, std::size_t most) {
  std::vector<KvtcGroup> groups;
  std::size_t components = 0;
  for (std::size_t n = 0; n < runs.array_size(); ++n) {
    const JsonCursor run = runs.at(n);
    const KvtcGroup group{run.at("size").unsigned_integer(kKvtcSizes.back()),
                          static_cast<KvtcType>(index_of(kKvtcTypeNames, run.at("type").string()))};
    if ((group.size == 1) != (group.type == KvtcType::kF16)) run.at("type").fail("f16 with groups of 1 alone");
    const std::size_t count = run.at("count").unsigned_integer((most - components) / group.size);
    components += count * group.size;
    groups.insert(groups.end(), count, group);
  }
  return groups;
}

std::vector<std::size_t> read_layers(const JsonCursor& root, const JsonCursor& layers, std::set<std::size_t>& taken) {
  const std::size_t count = root.at("model").at("layers").unsigned_integer();
  const Json without = root.at("model").value().value("layers_without_cache", Json::array());
  std::vector<std::size_t> found;
  found.reserve(layers.array_size());
  for (std::size_t n = 0; n < layers.array_size(); ++n) {
    found.push_back(layers.at(n).unsigned_integer(count - 1));
    if (n > 0 && found[n] <= found[n - 1]) layers.at(n).fail("layers in ascending order");
    if (!taken.insert(found[n]).second) layers.at(n).fail("a layer that no other pool has");
    if (std::ranges::find(without, Json(found[n])) != without.end()) layers.at(n).fail("a layer with a cache");
  }
  return found;
}

std::string tensor_name_of(std::size_t pool, const std::string& what) {
  return "pools." + std::to_string(pool) + '.' + what;
}

}  // namespace

Json kvtc_parameters(const KvtcConfig& config) {
  Json pools = Json::array();
  for (const KvtcPool& pool : config.pools)
    pools.push_back({{"layers", pool.layers},
                     {"keys", groups_json(pool.keys.groups)},
                     {"values", groups_json(pool.values.groups)}});
  return {{"sinks", config.tokens.sinks},
          {"recent", config.tokens.recent},
          {"block", config.tokens.block},
          {"recent_type", kKvtcRecentNames[static_cast<std::size_t>(config.tokens.type)]},
          {"pools", std::move(pools)}};
}

Json kvtc_calibration(const KvtcConfig& config) {
  return {{"budget", {{"window", config.window}, {"bytes", config.bytes}}},
          {"bits", config.bits},
          {"code_bytes", config.code_bytes}};
}

KvtcConfig read_kvtc_config(const Json& json, const std::string& where) {
  const JsonCursor root(json, where), parameters = root.at("parameters"), calibration = root.at("calibration");
  KvtcConfig config{
      .tokens = {.sinks = parameters.at("sinks").unsigned_integer(kMaxKvtcTokens),
                 .recent = parameters.at("recent").unsigned_integer(kMaxKvtcTokens),
                 .block = parameters.at("block").unsigned_integer(kMaxKvtcBlock),
                 .type = static_cast<KvtcRecent>(index_of(kKvtcRecentNames, parameters.at("recent_type").string()))},
      .pools = {},
      .window = calibration.at("budget").at("window").unsigned_integer(),
      .bytes = calibration.at("budget").at("bytes").unsigned_integer(),
      .bits = calibration.at("bits").real(),
      .code_bytes = calibration.at("code_bytes").real()};
  const JsonCursor pools = parameters.at("pools");
  std::set<std::size_t> taken;
  for (std::size_t n = 0; n < pools.array_size(); ++n) {
    const JsonCursor pool = pools.at(n);
    KvtcPool& found = config.pools.emplace_back();
    found.layers = read_layers(root, pool.at("layers"), taken);
    const std::size_t values = values_of(root, found.layers), most = (values + kKvtcStep - 1) / kKvtcStep * kKvtcStep;
    found.keys.groups = read_groups(pool.at("keys"), most);
    found.values.groups = read_groups(pool.at("values"), most);
  }
  return config;
}

std::vector<OutputTensor> kvtc_tensors(const std::vector<KvtcPool>& pools) {
  std::vector<OutputTensor> tensors;
  for (std::size_t n = 0; n < pools.size(); ++n)
    for (const auto& [name, side] : {std::pair("keys", &pools[n].keys), std::pair("values", &pools[n].values)}) {
      tensors.push_back(held_tensor(tensor_name_of(n, name + std::string(".mean")), {side->values()}, side->mean));
      tensors.push_back(held_tensor(tensor_name_of(n, name + std::string(".basis")),
                                    {side->components(), side->values()}, side->basis, DType::kF16));
    }
  return tensors;
}

KvtcConfig read_kvtc_pools(const Json& json, const std::filesystem::path& path) {
  KvtcConfig config = read_kvtc_config(json, path.string());
  const JsonCursor root(json, path.string());
  const std::filesystem::path file = path.parent_path() / json.at("files").at(0).at("path").get<std::string>();
  const auto archive = open_safetensors(file);
  const FactorReader read = reader_of(*archive, file);
  for (std::size_t n = 0; n < config.pools.size(); ++n) {
    KvtcPool& pool = config.pools[n];
    const std::size_t values = values_of(root, pool.layers);
    for (const auto& [name, side] : {std::pair("keys", &pool.keys), std::pair("values", &pool.values)}) {
      side->mean = read(tensor_name_of(n, name + std::string(".mean")), {values});
      side->basis = read(tensor_name_of(n, name + std::string(".basis")), {side->components(), values});
    }
  }
  return config;
}

std::size_t shared_bytes(const std::vector<KvtcPool>& pools) noexcept {
  std::size_t bytes = 0;
  for (const KvtcPool& pool : pools)
    for (const KvtcSide* const side : {&pool.keys, &pool.values})
      bytes += side->mean.size() * sizeof(float) + side->basis.size() * item_size(DType::kF16);
  return bytes;
}

}  // namespace kvs::inline calibrate
