#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "policy/cache_method.h"

namespace kvs {

/// All of them, in the order in which they are listed.
std::span<const CacheMethod* const> cache_methods() noexcept;
/// nullptr if there is none of this name.
const CacheMethod* find_cache_method(std::string_view name) noexcept;

/// A cache for a whole model. Beside the method's own parameters `layers`, `prefix` and `prefill` are read. Layers with
/// a sliding window keep what their window reads, whatever the method.
/// @param windows  of each layer, 0: none; empty: no layer has one (ModelConfig::windows)
Cache make_cache(const CacheMethod& method, Parameters& parameters, std::span<const std::size_t> windows);
/// Every parameter that make_cache reads for a method.
std::vector<ParameterSpec> describe(const CacheMethod& method);

}  // namespace kvs
