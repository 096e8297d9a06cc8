// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cache_choice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/config/config.h"
#include "calibrate/registry.h"
#include "model/cache_shape.h"
#include "model/token_index.h"

namespace kvs::inline calibrate {
namespace {

Cache make(const CacheChoice& choice, const ModelConfig& model) {
  const CacheShape shape = cache_shape(model);
  Parameters parameters(choice.parameters, shape);
  return make_cache(*choice.method, parameters, shape);
}

/// Refuses a method that is not defined for the model.
void refuse_method(const CacheChoice& choice, const ModelConfig& model) {
  refuse_obstacle(obstacle_of(*choice.method, model), choice.method->name, model);
}

/// Refuses a cache that drops or codes tokens, for a text in which the model's index chooses the tokens that are read.
void refuse_choices(Cache& cache, const std::string& name, const ModelConfig& model, std::size_t tokens) {
  for (const std::size_t layer : model.cached_layers())
    refuse_dropped_tokens(model.layer[layer].attention.latent.index, cache.layer(layer), tokens, name);
}

}  // namespace

bool CacheChoice::has_kv_type() const {
  const Json all = given();
  return std::ranges::any_of(std::array{"type", "type_k", "type_v"}, [&](const char* side) {
    const Json value = all.value(side, Json("none"));
    return value != "none" && value != "type";
  });
}

Json CacheChoice::given() const {
  Json all = Json::object();
  for (const ParameterSource& source : parameters) all.update(source.values);
  if (loaded) all.erase("layers");  // set by the config, not chosen
  return all;
}

std::optional<Json> CacheChoice::shown_parameters() const {
  Json all = given();
  return loaded && all.empty() ? std::nullopt : std::optional(std::move(all));
}

Json CacheChoice::resolved(const ModelConfig& model) const {
  const CacheShape shape = cache_shape(model);
  Parameters reader(parameters, shape);
  (void)make_cache(*method, reader, shape);
  return reader.resolved();
}

CacheChoice full_choice() { return {.method = &kFullMethod}; }

CacheChoice choice_of_config(const std::filesystem::path& path, const ModelSource& source) {
  const Json config = read_config(path);
  check_config_model(config, path, source);
  CacheChoice choice{.method = find_method(config.at("method").get<std::string>())};
  choice.calibrated = config.at("calibration").at("documents") > 0;
  Json parameters = config.at("parameters");
  if (choice.method->only_with_config()) {
    choice.loaded = find_calibration(*choice.method)->load(config, path, source);
    parameters = choice.loaded->parameters();
  }
  choice.parameters.push_back({std::move(parameters), path.string() + ": /parameters/", ErrorCode::kInput});
  return choice;
}

void check_choice(const CacheChoice& choice, const ModelConfig& model) {
  refuse_method(choice, model);
  if (!choice.loaded) return (void)make(choice, model);
  Parameters parameters(choice.parameters, cache_shape(model));
  choice.loaded->read(parameters);
  parameters.check_known();
}

CacheChoice cache_of_config(const std::filesystem::path& path, const ModelSource& source) {
  CacheChoice choice = choice_of_config(path, source);
  check_choice(choice, source.config());
  return choice;
}

std::size_t cache_positions(const CacheChoice& choice, const ModelConfig& model, std::size_t tokens) {
  return choice.loaded ? tokens : make(choice, model).positions(tokens);
}

std::function<Cache()> cache_maker(CacheChoice choice, Backend& backend, const ModelConfig& model, std::size_t tokens) {
  refuse_method(choice, model);
  const std::string name = choice.name();
  std::function<Cache()> maker;
  if (choice.loaded) {
    Parameters parameters(choice.parameters, cache_shape(model));
    maker = choice.loaded->caches(backend, model, parameters, tokens);
  } else {
    maker = [choice = std::move(choice), &model] { return make(choice, model); };
  }
  if (!model.has_index()) return maker;
  return [maker = std::move(maker), name, &model, tokens] {
    Cache cache = maker();
    refuse_choices(cache, name, model, tokens);
    return cache;
  };
}

}  // namespace kvs::inline calibrate
