#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "policy/layer_cache.h"
#include "policy/parameters.h"

namespace kvs {

/// How a method takes a prefix: a step at a time, whole (compressed once, at its end), or as it is asked to.
enum class Prefill { kStepwise, kWhole, kEither };

/// One way to keep a cache, by the name that `--method` and a config's `method` give it.
struct CacheMethod {
  std::string_view name;
  std::string_view parameters;  // as --help lists them
  /// The cache of the layer that `parameters` have selected. @throws Error as Parameters.
  std::unique_ptr<LayerCache> (*make)(Parameters& parameters, std::size_t layer);
  Prefill prefill;
};

std::span<const CacheMethod> cache_methods() noexcept;
/// nullptr if there is none of this name.
const CacheMethod* find_cache_method(std::string_view name) noexcept;

/// A cache for a whole model. Beside the method's own parameters `prefix` and `prefill` are read. Layers with a sliding
/// window keep what their window reads, whatever the method.
/// @param windows  of each layer, 0: none; empty: no layer has one (ModelConfig::windows)
Cache make_cache(const CacheMethod& method, Parameters& parameters, std::span<const std::size_t> windows);

}  // namespace kvs
