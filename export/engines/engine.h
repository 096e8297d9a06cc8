// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/budget/offer.h"
#include "calibrate/cache_choice.h"
#include "io/json.h"
#include "model/config.h"
#include "results/evaluation.h"

namespace kvs::inline engines {

/// A cache with all parameters, for a model.
struct EngineCache {
  const Method& method;
  Json parameters;  // with every default; empty for a method without Method::make
  const ModelConfig& model;
  std::string package_obstacle;  // LoadedConfig::package_obstacle()

  EngineCache(const CacheChoice& choice, const ModelConfig& config);
  bool is_full() const noexcept { return &method == &kFullMethod; }
  /// The storage type of keys and of values in each layer with a KV cache. 16 bits are "none".
  struct Types {
    std::string k, v;
    bool operator==(const Types&) const = default;
  };
  /// Returns [layer with a KV cache]. The method must be the full cache.
  std::vector<Types> types() const;
  std::string word(const char* name) const { return parameters.at(name).get<std::string>(); }
};

/// An engine that holds KV caches, and the caches that it executes as this project computes them.
struct Engine {
  std::string_view name;     // as typed
  std::string_view version;  // whose sources or documentation were read
  std::string_view summary;  // in a sentence: what it executes
  /// Storage types of the full cache that `compare --engine` tries, KIND or KIND/KIND.
  std::span<const std::string_view> types = {};  // empty: the full cache at 16 bits alone
  TypesByLayer by_layer = TypesByLayer::kOne;    // how these types may differ between layers
  bool runs_methods = false;                     // executes methods other than the full cache
  std::string_view settings = {};                // settings that its storage types need, as NAME=VALUE
  /// Returns why the engine does not execute the cache, as "found …, expected …"; empty if it does.
  std::string (*obstacle)(const EngineCache& cache) = nullptr;
  /// Returns how the engine is told. obstacle() must be empty.
  EngineUse (*use)(const EngineCache& cache) = nullptr;
  /// Returns the module of a layer with whose name the engine reads the tensors k_scale and v_scale. nullptr: it reads
  /// none.
  std::string_view (*scale_module)(const ModelConfig& model) = nullptr;
};

std::span<const Engine* const> all_engines() noexcept;
std::vector<std::string> engine_names();
/// @throws Error kUsage with the known names
const Engine& engine_of(const std::string& name, const std::string& option);
/// Returns Engine::settings as parameters.
Json settings_of(const Engine& engine);
/// Returns why the engine does not execute the full cache with these settings for the model, or why the model's shape
/// refuses them; else empty.
std::string settings_obstacle(const Engine& engine, const Json& settings, const ModelConfig& model);
/// Returns the settings of the full cache that the engine executes for the model: 16 bits and each of Engine::types, or
/// every pair of its types where keys and values have types of their own. Settings that the model's shape or the engine
/// refuses are left out.
/// @param fixed  parameters common to all settings, which replace the engine's own
/// @throws Error kUnsupported with the first reason, if the engine executes none of its types
OfferedTypes offered_types(const Engine& engine, const ModelConfig& model, const Json& fixed);
/// Refuses an engine that executes nothing but the full cache at 16 bits, which leaves nothing to compare.
/// @throws Error kUnsupported
void require_compared_caches(const Engine& engine, const std::string& option);
/// Returns how the engine is told the cache, with its name. Engine::obstacle must be empty.
EngineUse use_in(const Engine& engine, const EngineCache& cache);
/// Returns the engines that execute the cache, in the order of all_engines(), and how each is told.
std::vector<EngineUse> engine_uses(const EngineCache& cache);

}  // namespace kvs::inline engines
