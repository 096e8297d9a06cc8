// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

/// The cache that options or a config request.
struct CacheChoice {
  const Method* method = nullptr;
  std::vector<ParameterSource> parameters = {};          // of a config, followed by settings given with it
  std::shared_ptr<const LoadedConfig> loaded = nullptr;  // for methods whose caches need a config's files
  bool calibrated = false;                               // by a config whose settings were chosen on a text

  std::string name() const { return std::string(method->name); }
  /// Returns true if rows are stored in a type other than the default.
  bool has_kv_type() const;
  /// Returns true if its rows can be stored in another type.
  bool takes_kv_type() const { return !has_kv_type() && method->takes_kv_type; }
  /// Returns true for the full cache with unchanged rows, the reference of comparisons.
  bool is_full() const { return method == &kFullMethod && !has_kv_type(); }
  /// Returns the given parameters as one object.
  Json given() const;
  /// The settings that results show: those that were given; nothing for a config of factors without more.
  std::optional<Json> shown_parameters() const;
  /// The parameters with every default: what a config keeps. For methods with Method::make.
  Json resolved(const ModelConfig& model) const;
  CacheForm form() const noexcept { return loaded ? loaded->form(method->form) : method->form; }
  std::size_t shared_bytes() const noexcept { return loaded ? loaded->shared_bytes() : 0; }
  /// The shared bytes as results show them: nothing for 0.
  std::optional<std::size_t> shown_shared_bytes() const {
    return shared_bytes() > 0 ? std::optional(shared_bytes()) : std::nullopt;
  }
};

/// Returns the full cache.
CacheChoice full_choice();
/// Returns the cache of a config. @throws Error kInput, kData, kConflict (a config for another model), kUnsupported,
/// before any weight is loaded
CacheChoice choice_of_config(const std::filesystem::path& path, const ModelSource& source);
/// Refuses invalid parameters of a choice. @throws Error like Parameters
void check_choice(const CacheChoice& choice, const ModelConfig& model);
/// Calls choice_of_config() and check_choice().
CacheChoice cache_of_config(const std::filesystem::path& path, const ModelSource& source);
/// Returns the number of positions that the cache's rotations use in a document of `tokens` tokens.
std::size_t cache_positions(const CacheChoice& choice, const ModelConfig& model, std::size_t tokens);
/// Returns a function that creates caches for documents of `tokens` tokens. `backend` and `model` must outlive it.
std::function<Cache()> cache_maker(CacheChoice choice, Backend& backend, const ModelConfig& model, std::size_t tokens);

}  // namespace kvs::inline calibrate
