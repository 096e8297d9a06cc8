#pragma once

#include <functional>
#include <string>

#include "calibrate/cache_choice.h"
#include "calibrate/method_help.h"
#include "run/model_session.h"

namespace kvs {

/// --config --method --set; the methods are listed by cache_method_lines().
/// @param standard  as choose_cache
void add_cache_options(OptionTable& table, const Method* default_value = nullptr);
/// Refuses what is wrong in the word of an option that names a cache, as far as no model is needed.
void check_cache_words(const std::string& text, const std::string& option);

/// The cache that --config, --method and --set ask for.
/// @param standard  the method without --config and --method; nullptr: one of the two is required
/// @param assumed   parameters of the method that are known later; they stand in while the others are checked
/// @throws Error kUsage, kInput, kConflict (a config for another model), kUnsupported, before any weight is loaded.
CacheChoice choose_cache(const Options& options, const ModelSource& source, const Method* default_value = nullptr,
                         const Json& assumed = Json::object());
/// The cache that one word of an option names: "METHOD [NAME=VALUE …]". @throws as choose_cache, naming `option`.
CacheChoice cache_of_words(const std::string& text, const std::string& option, const ModelSource& source);
/// cache_maker() on the session's backend. Must not outlive the session.
std::function<Cache()> cache_maker(CacheChoice choice, const ModelSession& session, std::size_t tokens);

}  // namespace kvs
