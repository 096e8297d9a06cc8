#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/loaded_config.h"
#include "calibrate/method.h"

namespace kvs {

/// The cache that options or a config ask for.
struct CacheChoice {
  const Method* method = nullptr;
  std::vector<ParameterSource> parameters = {};          // of a config, then what is set beside it
  std::shared_ptr<const LoadedConfig> loaded = nullptr;  // of a method whose caches need a config's files
  bool calibrated = false;                               // by a config whose settings were chosen on a text

  std::string name() const { return std::string(method->name); }
  /// Whether rows are held in another type than they come.
  bool has_kv_type() const;
  /// Whether its rows can be held in another type.
  bool takes_kv_type() const { return !has_kv_type() && method->rows; }
  /// Whether it is the full cache with its rows as they come, which others are compared with.
  bool is_full() const { return method == &kFullMethod && !has_kv_type(); }
  /// What was given, as one object.
  Json given() const;
  /// What results show of it: what was given; nothing for a config of factors without more.
  std::optional<Json> shown_parameters() const;
  /// The parameters with every default: what a config keeps. For methods with Method::make.
  Json resolved(const ModelConfig& model) const;
  std::size_t shared_bytes() const noexcept { return loaded ? loaded->shared_bytes() : 0; }
};

/// The full cache.
CacheChoice full_choice();
/// The cache of a config. @throws Error kInput, kData, kConflict (a config for another model), kUnsupported, before any
/// weight is loaded
CacheChoice choice_of_config(const std::filesystem::path& path, const ModelSource& source);
/// Refuses what is wrong in a choice's parameters. @throws Error as Parameters
void check_choice(const CacheChoice& choice, const ModelConfig& model);
/// choice_of_config() and check_choice().
CacheChoice cache_of_config(const std::filesystem::path& path, const ModelSource& source);
/// Positions that the cache's rotations use in a document of `tokens` tokens.
std::size_t cache_positions(const CacheChoice& choice, const ModelConfig& model, std::size_t tokens);
/// Makes a fresh cache at each call, for documents of `tokens` tokens. `backend` and `model` must outlive it.
std::function<Cache()> cache_maker(CacheChoice choice, Backend& backend, const ModelConfig& model, std::size_t tokens);

}  // namespace kvs
