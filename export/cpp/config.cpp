// SPDX-License-Identifier: Apache-2.0
#include "kvspectrum/config.h"

#include <algorithm>
#include <optional>

#include "calibrate/config/config.h"
#include "calibrate/config/config_lists.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/kvtc/config.h"
#include "calibrate/registry.h"
#include "calibrate/transform/config.h"
#include "core/error.h"
#include "results/head.h"

namespace kvspectrum {

struct Config::Content {
  std::string where, method;
  Geometry model;
  std::vector<std::size_t> layers;
  std::vector<std::filesystem::path> files;
  kvs::Json parameters;  // including defaults
  std::vector<kvs::ParameterSpec> specs;
  std::optional<kvs::EliteConfig> elite;

  std::size_t position(std::size_t layer) const {
    const auto found = std::ranges::find(layers, layer);
    if (found == layers.end())
      throw Error(where + ": layer " + std::to_string(layer) + ": found none, expected one that the method is for");
    return static_cast<std::size_t>(found - layers.begin());
  }

  /// Returns the value of a layer. A list of a parameter of these kinds has one value for each of `layers`.
  kvs::Json value(const std::string& name, std::size_t layer, kvs::ParameterSpec::Kind kind) const {
    const auto spec = std::ranges::find(specs, name, &kvs::ParameterSpec::name);
    if (spec == specs.end() || spec->kind != kind)
      throw Error(where + ": /parameters/" + name + ": found no parameter of this name and type in " + method);
    const kvs::Json& value = parameters.at(name);
    const std::size_t at = position(layer);
    const bool indices = kind == kvs::ParameterSpec::Kind::kIndices;
    const bool by_layer = value.is_array() && (!indices || (!value.empty() && value.front().is_array()));
    return by_layer ? value.at(at) : value;
  }
};

namespace {

using Kind = kvs::ParameterSpec::Kind;

const kvs::EliteConfig& elite_of(const std::optional<kvs::EliteConfig>& elite, const std::string& where) {
  if (!elite) throw Error(where + ": /method: found another, expected elitekv");
  return *elite;
}

std::vector<kvs::ParameterSpec> transform_specs() {
  return {{"rows", "", Kind::kWord},        {"sinks", "", Kind::kCount},     {"recent", "", Kind::kCount},
          {"code_bytes", "", Kind::kCount}, {"thresholds", "", Kind::kReal}, {"outliers", "", Kind::kReal}};
}

std::vector<kvs::ParameterSpec> kvtc_specs() {
  return {{"sinks", "", Kind::kCount},
          {"recent", "", Kind::kCount},
          {"block", "", Kind::kCount},
          {"recent_type", "", Kind::kWord}};
}

/// Returns the layers of all pools, ascending.
std::vector<std::size_t> kvtc_layers(const kvs::Json& json, const std::string& where) {
  std::vector<std::size_t> layers;
  for (const kvs::KvtcPool& pool : kvs::read_kvtc_config(json, where).pools)
    layers.insert(layers.end(), pool.layers.begin(), pool.layers.end());
  std::ranges::sort(layers);
  return layers;
}

}  // namespace

Config Config::read(const std::filesystem::path& path) try {
  const kvs::Json json = kvs::read_config(path);
  auto content = std::make_shared<Content>();
  content->where = path.string();
  content->method = json.at("method").get<std::string>();
  const kvs::Json& model = json.at("model");
  const kvs::ModelRecord record = kvs::from_json<kvs::ModelRecord>(kvs::JsonCursor(model, content->where));
  const auto by_layer = [&](const kvs::LayerSizes& sizes) {
    std::vector<std::size_t> values;
    for (std::size_t layer = 0; layer < record.layers; ++layer)
      values.push_back(record.has_cache(layer) ? sizes.of(layer) : 0);
    return values;
  };
  content->model = {.name = model.at("name").get<std::string>(),
                    .architecture = model.at("architecture").get<std::string>(),
                    .sha256 = model.at("sha256").get<std::string>(),
                    .layers = record.layers,
                    .query_heads = by_layer(record.query_heads),
                    .kv_heads = by_layer(record.kv_heads),
                    .head_dim = by_layer(record.head_dim)};
  for (const kvs::Json& file : json.at("files"))
    content->files.push_back(path.parent_path() / file.at("path").get<std::string>());
  const kvs::Method* const method = kvs::find_method(content->method);
  if (method->make != nullptr) {
    const std::string where = content->where + ": /parameters/";
    const kvs::CacheShape shape = kvs::recorded_shape(json);
    kvs::Parameters reader({{json.at("parameters"), where, kvs::ErrorCode::kInput}}, shape);
    (void)kvs::make_cache(*method, reader, shape);
    content->parameters = reader.resolved();
    content->specs = reader.specs();
    content->layers = content->parameters.at("layers").get<std::vector<std::size_t>>();
  } else if (content->method == "transform") {
    content->parameters = json.at("parameters");
    content->specs = transform_specs();
    content->layers = kvs::read_transform_config(json, content->where).layers;
  } else if (content->method == "kvtc") {
    content->parameters = json.at("parameters");
    content->specs = kvtc_specs();
    content->layers = kvtc_layers(json, content->where);
  } else {
    content->elite = kvs::read_elite_config(json, content->where);
    content->layers = content->elite->layers;
  }
  return Config(std::move(content));
} catch (const std::exception& error) {
  throw Error(error.what());
}

const std::string& Config::method() const noexcept { return content_->method; }
const Geometry& Config::model() const noexcept { return content_->model; }
const std::vector<std::size_t>& Config::layers() const noexcept { return content_->layers; }
const std::vector<std::filesystem::path>& Config::files() const noexcept { return content_->files; }

std::size_t Config::count(const std::string& name, std::size_t layer) const {
  return content_->value(name, layer, Kind::kCount).get<std::size_t>();
}
double Config::real(const std::string& name, std::size_t layer) const {
  return content_->value(name, layer, Kind::kReal).get<double>();
}
std::string Config::word(const std::string& name, std::size_t layer) const {
  return content_->value(name, layer, Kind::kWord).get<std::string>();
}
std::vector<std::size_t> Config::indices(const std::string& name, std::size_t layer) const {
  return content_->value(name, layer, Kind::kIndices).get<std::vector<std::size_t>>();
}
std::vector<double> Config::values(const std::string& name, std::size_t layer) const {
  const kvs::Json value = content_->value(name, layer, Kind::kReals);
  if (value.is_array()) return value.get<std::vector<double>>();
  return std::vector<double>(content_->model.kv_heads[layer], value.get<double>());
}

std::vector<std::vector<std::size_t>> Config::elite_chunks(std::size_t layer) const {
  std::vector<std::vector<std::size_t>> chunks;
  for (const kvs::ElitePicks& picks : elite_of(content_->elite, content_->where).picks[content_->position(layer)])
    chunks.push_back(picks.chunks);
  return chunks;
}

std::vector<Factor> Config::factors(std::size_t layer) const {
  const kvs::EliteConfig& elite = elite_of(content_->elite, content_->where);
  std::vector<Factor> factors;
  if (!elite.rank) return factors;
  for (const kvs::EliteFactor& factor : kvs::elite_factors(
           elite, content_->position(layer), content_->model.kv_heads[layer], content_->model.head_dim[layer]))
    factors.push_back({factor.up, factor.down, factor.rows, factor.rank});
  return factors;
}

}  // namespace kvspectrum
