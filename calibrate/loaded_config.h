// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/cache_form.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// The content of a config's files, in memory, for a method whose caches need them.
class LoadedConfig {
 public:
  virtual ~LoadedConfig() = default;

  /// Returns the config's parameters that may be overridden, such as a storage type.
  virtual Json parameters() const { return Json::object(); }
  /// Refuses `settings`, given by `option` in addition to the config, that would have no effect. @throws Error kUsage
  virtual void check_settings(const Json& settings, const std::string& option) const = 0;
  /// Reads parameters() and overrides of them. @throws Error like Parameters
  virtual void read(Parameters& parameters) const = 0;
  /// Returns a function that creates a fresh cache for documents of `tokens` tokens. Shared data are created once.
  /// @param parameters  as for read()
  virtual std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters& parameters,
                                        std::size_t tokens) const = 0;
  /// Returns the form of the caches. @param of_method  Method::form
  virtual CacheForm form(CacheForm of_method) const noexcept { return of_method; }
  /// Returns why the Python package does not read the config, as "found …, expected …"; empty if it does.
  virtual std::string package_obstacle() const { return ""; }
  /// Bytes that the caches of all sequences share, in addition to those of each cache.
  virtual std::size_t shared_bytes() const noexcept { return 0; }
};

}  // namespace kvs::inline calibrate
