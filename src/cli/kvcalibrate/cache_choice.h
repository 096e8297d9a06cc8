#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/elitekv/cache.h"
#include "calibrate/registry.h"
#include "calibrate/transform/cache.h"
#include "cli/common/session.h"

namespace kvs {

/// --config --method --set; the methods are listed by cache_method_lines().
/// @param standard  as choose_cache
void add_cache_options(OptionTable& table, const char* standard = nullptr);
/// Refuses what is wrong in the word of an option that names a cache, as far as no model is needed.
void check_cache_words(const std::string& text, const std::string& option);
/// A line for each method and its parameters, for --help.
std::string cache_method_lines();

/// The cache that a command line asks for: a method of the table, or an elitekv or transform config.
struct CacheChoice {
  std::string name;
  const CacheMethod* method = nullptr;           // nullptr: `elite` or `transform`
  std::vector<ParameterSource> parameters = {};  // of a config, then of --set
  std::vector<EliteLayer> elite = {};            // of elitekv
  std::vector<TransformLayer> transform = {};    // of transform
  bool calibrated = false;                       // by a config whose settings were chosen on a text

  /// Whether rows are held in another form than they come.
  bool has_store() const;
  /// Whether its rows can be held in another form.
  bool takes_store() const { return !has_store() && transform.empty() && (method == nullptr || method->rows); }
  /// Whether it is the full cache with its rows as they come, which others are compared with.
  bool is_full() const { return name == "full" && !has_store(); }
  /// What was given, as one object.
  Json given() const;
  /// The same with every standard: what a config keeps.
  Json resolved(const ModelConfig& model) const;
};

/// @param standard  the method without --config and --method; nullptr: one of the two is required
/// @param assumed   parameters of the method that are known later; they stand in while the others are checked
/// @throws Error kUsage, kInput, kConflict (a config for another model), kUnsupported, before any weight is loaded.
CacheChoice choose_cache(const Options& options, const ModelSource& source, const char* standard = nullptr,
                         const Json& assumed = Json::object());
/// The cache that one word of an option names: "METHOD [NAME=VALUE …]". @throws as choose_cache, naming `option`.
CacheChoice cache_of_words(const std::string& text, const std::string& option, const ModelSource& source);
/// The cache of a config. @throws as choose_cache.
CacheChoice cache_of_config(const std::filesystem::path& path, const ModelSource& source);
/// Positions that the cache's rotations use in a document of `tokens` tokens.
std::size_t cache_positions(const CacheChoice& choice, const ModelConfig& model, std::size_t tokens);
/// Makes a fresh cache at each call, for documents of `tokens` tokens. Must not outlive the session.
std::function<Cache()> cache_maker(CacheChoice choice, const ModelSession& session, std::size_t tokens);

}  // namespace kvs
