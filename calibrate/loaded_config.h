#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "model/model.h"

namespace kvs {

/// What the files of a config hold, in memory, of a method whose caches need them.
class LoadedConfig {
 public:
  virtual ~LoadedConfig() = default;

  /// What of the config's parameters may be set otherwise beside it, such as a storage type.
  virtual Json parameters() const { return Json::object(); }
  /// Refuses `settings`, given by `option` beside the config, that would have no effect. @throws Error kUsage
  virtual void check_settings(const Json& settings, const std::string& option) const = 0;
  /// Reads parameters() and what is set beside them. @throws Error as Parameters
  virtual void read(Parameters& parameters) const = 0;
  /// Makes a fresh cache at each call, for documents of `tokens` tokens; what the caches share is made once.
  /// @param parameters  as read() takes them
  virtual std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters& parameters,
                                        std::size_t tokens) const = 0;
  /// Bytes that the caches of all sequences share, beside those of each.
  virtual std::size_t shared_bytes() const noexcept { return 0; }
};

}  // namespace kvs
