// SPDX-License-Identifier: Apache-2.0
#include "export/engines/engine.h"

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/budget/grid.h"
#include "calibrate/common/engine_pairs.h"
#include "core/error.h"
#include "core/nearest.h"
#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

/// Returns the element of a parameter for one of the method's layers.
std::string of_layer(const Json& value, std::size_t layer) {
  return (value.is_array() ? value.at(layer) : value).get<std::string>();
}

const std::array<const Engine*, 8> kEngines{&kLlamaCpp, &kIkLlama,     &kVllm,         &kVllmModelOpt,
                                            &kSglang,   &kTensorRtLlm, &kTransformers, &kTransformersPackage};

/// Returns 16 bits and each type of the engine, or every pair where it has types of keys and of values apart.
std::vector<Json> settings_of_types(const Engine& engine) {
  std::vector<Json> words{"f16"}, all;
  bool apart = false;
  for (const std::string_view type : engine.types)
    if (type.find('/') == std::string_view::npos)
      words.emplace_back(type);
    else
      apart = true;
  if (apart) return combinations({{"type_k", words}, {"type_v", words}});
  all.reserve(words.size());
  for (const Json& word : words) all.push_back({{"type", word}});
  return all;
}

}  // namespace

EngineCache::EngineCache(const CacheChoice& choice, const ModelConfig& config)
    : method(*choice.method),
      parameters(choice.method->make == nullptr ? Json::object() : choice.resolved(config)),
      model(config),
      package_obstacle(choice.loaded ? choice.loaded->package_obstacle() : "") {}

std::vector<EngineCache::Types> EngineCache::types() const {
  const std::vector<std::size_t> cached = model.cached_layers();
  std::vector<Types> all(cached.size(), {"none", "none"});
  const auto layers = parameters.at("layers").get<std::vector<std::size_t>>(),
             skipped = parameters.at("type_skip_layers").get<std::vector<std::size_t>>();
  for (std::size_t n = 0; n < layers.size(); ++n) {
    if (std::ranges::find(skipped, layers[n]) != skipped.end()) continue;
    const std::string both = of_layer(parameters.at("type"), n), k = of_layer(parameters.at("type_k"), n),
                      v = of_layer(parameters.at("type_v"), n);
    const auto at = std::ranges::find(cached, layers[n]) - cached.begin();
    all[static_cast<std::size_t>(at)] = {k == "type" ? both : k, v == "type" ? both : v};
  }
  return all;
}

std::string only_full(const EngineCache& cache) {
  if (cache.is_full()) return "";
  return "found " + std::string(cache.method.name) + ", expected the full cache, in storage types of the engine";
}

std::optional<std::string> one_type(const EngineCache& cache, std::string& obstacle) {
  const std::vector<EngineCache::Types> types = cache.types();
  if (types.empty() || types.front().k == types.front().v) {
    const auto other = std::ranges::find_if(types, [&](const auto& one) { return one != types.front(); });
    if (other == types.end()) return types.empty() ? "none" : types.front().k;
    obstacle = "found other types in some layers, expected one for all";
  } else {
    obstacle = "found " + types.front().k + " keys and " + types.front().v + " values, expected one type for both";
  }
  return std::nullopt;
}

std::string only_types(const EngineCache& cache, std::span<const std::string_view> types) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  std::string obstacle;
  const auto type = one_type(cache, obstacle);
  if (!type) return obstacle;
  return *type == "none" || *type == "bf16" || holds(types, *type) ? "" : unknown_type(*type, types);
}

std::string type_of_all(const EngineCache& cache) {
  const auto types = cache.types();
  return types.empty() || types.front().k == "bf16" ? "none" : types.front().k;
}

std::string scales_but_one(const EngineCache& cache, const std::string& type) {
  for (const char* name : {"scale_k", "scale_v"})
    if (cache.parameters.at(name) != Json(1.0))
      return "found " + std::string(name) + " other than 1, expected 1: the engine has no scales of " + type;
  return "";
}

bool is_16_bits(const std::string& type) { return type == "none" || type == "f16" || type == "bf16"; }

bool holds(std::span<const std::string_view> types, std::string_view type) {
  return std::ranges::find(types, type) != types.end();
}

std::string unknown_type(const std::string& type, std::span<const std::string_view> types) {
  return "found " + type + ", expected one of " + listed(std::vector<std::string>(types.begin(), types.end()));
}

std::span<const Engine* const> all_engines() noexcept { return kEngines; }

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  names.reserve(kEngines.size());
  for (const Engine* const engine : kEngines) names.emplace_back(engine->name);
  return names;
}

const Engine& engine_of(const std::string& name, const std::string& option) {
  const auto engine = std::ranges::find(kEngines, name, &Engine::name);
  if (engine != kEngines.end()) return **engine;
  const std::vector<std::string> names = engine_names();
  throw Error(ErrorCode::kUsage, option,
              "found '" + name + "', expected one of " + listed(names) + did_you_mean(name, names));
}

Json settings_of(const Engine& engine) {
  if (engine.settings.empty()) return Json::object();
  return parse_settings(std::array{std::string(engine.settings)}, std::string(engine.name));
}

std::string settings_obstacle(const Engine& engine, const Json& settings, const ModelConfig& model) {
  try {
    const CacheChoice choice{.method = &kFullMethod, .parameters = {{settings, "", ErrorCode::kUnsupported}}};
    return engine.obstacle(EngineCache(choice, model));
  } catch (const Error& error) {  // such as a head_dim that is no multiple of the type's blocks
    if (error.code() != ErrorCode::kUnsupported) throw;
    return error.what();
  }
}

OfferedTypes offered_types(const Engine& engine, const ModelConfig& model, const Json& fixed) {
  OfferedTypes offered{.settings = {}, .by_layer = engine.by_layer};
  std::string reason;
  bool coded = false;
  for (Json settings : settings_of_types(engine)) {
    const bool plain = std::ranges::all_of(settings, [](const Json& type) { return type == "f16"; });
    settings.update(settings_of(engine));
    settings.update(fixed);
    const std::string obstacle = settings_obstacle(engine, settings, model);
    if (reason.empty() && !plain) reason = obstacle;  // an engine may lack f16 and yet have types of its own
    if (!obstacle.empty()) continue;
    coded = coded || !plain;
    offered.settings.push_back(std::move(settings));
  }
  if (!coded) throw Error(ErrorCode::kUnsupported, std::string(engine.name), reason);
  return offered;
}

void require_compared_caches(const Engine& engine, const std::string& option) {
  if (!engine.types.empty()) return;
  std::vector<std::string> measured;
  for (const Engine* const one : all_engines())
    if (!one->types.empty()) measured.emplace_back(one->name);
  throw Error(ErrorCode::kUnsupported, option,
              "found " + std::string(engine.name) + ", which executes " + std::string(engine.summary) +
                  "; expected one of " + listed(measured));
}

EngineUse use_in(const Engine& engine, const EngineCache& cache) {
  EngineUse use = engine.use(cache);
  use.engine = engine.name;
  return use;
}

std::vector<EngineUse> engine_uses(const EngineCache& cache) {
  std::vector<EngineUse> uses;
  for (const Engine* const engine : all_engines())
    if (engine->obstacle(cache).empty()) uses.push_back(use_in(*engine, cache));
  return uses;
}

}  // namespace kvs::inline engines
