#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/method.h"

namespace kvs {

/// All of them, in the order in which they are listed.
std::span<const CacheMethod* const> cache_methods() noexcept;
/// nullptr if there is none of this name.
const CacheMethod* find_cache_method(std::string_view name) noexcept;

/// The cache of one layer. Beside the method's own parameters `layers` is read, and where the method keeps rows those
/// of read_store(). Layers with a sliding window keep what their window reads, whatever the method.
std::unique_ptr<LayerCache> make_layer_cache(const CacheMethod& method, Parameters& parameters, std::size_t layer,
                                             const CacheShape& shape);
/// A cache for a whole model, for which `prefix` and `prefill` are read, too.
/// @throws Error also for a parameter that is unknown
Cache make_cache(const CacheMethod& method, Parameters& parameters, const CacheShape& shape);
/// Every parameter that make_cache reads for a method.
std::vector<ParameterSpec> describe(const CacheMethod& method);

/// Checks the names of settings and, as far as no model and no other setting has a part in it, their values.
/// @param where  the option, for messages;  @throws Error kUsage
void check_settings(const CacheMethod& method, const Json& settings, const std::string& where);
/// Checks that parameters without a standard, which are counts, are there.
/// @param later  names of those that are known later;  @throws Error kUsage
void check_complete(const CacheMethod& method, const Json& settings, const std::string& where,
                    std::span<const std::string_view> later = {});

}  // namespace kvs
