// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/cache_choice.h"
#include "model/model.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Adds --config, --method and --set. cache_method_lines() lists the methods.
/// @param default_value  as in choose_cache()
void add_cache_options(OptionTable& table, const Method* default_value = nullptr);
/// Checks an option's value that names a cache, as far as possible without a model.
void check_cache_words(const std::string& text, const std::string& option);

/// Returns the cache selected by --config, --method and --set.
/// @param default_value  the method without --config and --method; nullptr: one of the two is required
/// @param assumed  placeholders for parameters that are known later, used to check the other parameters
/// @throws Error kUsage, kInput, kConflict (a config for another model), kUnsupported, before any weight is loaded.
CacheChoice choose_cache(const Options& options, const ModelSource& source, const Method* default_value = nullptr,
                         const Json& assumed = Json::object());
/// Returns the cache that an option's value names: "METHOD [NAME=VALUE …]".
/// @throws the errors of choose_cache(), naming `option`.
CacheChoice cache_of_words(const std::string& text, const std::string& option, const ModelSource& source);

}  // namespace kvs::inline calibrate
