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

/// A cache for a whole model. Beside the method's own parameters `layers`, `prefix` and `prefill` are read,
/// and where it keeps rows those of read_store(). Layers with
/// a sliding window keep what their window reads, whatever the method.
Cache make_cache(const CacheMethod& method, Parameters& parameters, const CacheShape& shape);
/// Every parameter that make_cache reads for a method.
std::vector<ParameterSpec> describe(const CacheMethod& method);

}  // namespace kvs
