// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caches/cache_shape.h"
#include "caches/kv_types.h"
#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/cache_form.h"
#include "calibrate/methods.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Where a method was published.
struct Paper {
  std::string_view authors, title, link;
  int year = 0;
};

/// How a method processes a prefix: in steps, whole (compressed once, at its end), or either, as requested. kNone: the
/// method has no parameter for it.
enum class Prefill { kStepwise, kWhole, kEither, kNone };

/// The layer for which a cache is created.
struct CacheLayer {
  std::size_t index = 0;
  const LayerShape& shape;
  KvTypes types = {};
};

/// A method as commands, configs, the schema and reports see it. Nothing here runs a model, so that the library of
/// export/cpp can link it. Its calibration is a Calibration.
struct Method {
  std::string_view name;     // the `method` of configs and options
  std::string_view title;    // in a sentence: "FreqKV"
  std::string_view summary;  // what it keeps
  Paper paper = {};          // empty: this project's own, or without a paper
  Prefill prefill = Prefill::kStepwise;
  CacheForm form = CacheForm::kInAttention;  // of its caches, unless a config has another one (LoadedConfig::form)
  /// True if its rows can be stored in any storage type (read_kv_types()).
  bool takes_kv_type = true;
  /// Creates the cache of the layer selected in `parameters`. @throws Error like Parameters. nullptr: the caches need
  /// the files of a config, which a calibration writes (Calibration::load).
  std::unique_ptr<LayerCache> (*make)(Parameters& parameters, const CacheLayer& layer) = nullptr;
  /// True if the caches need the files of a config in addition to the parameters that `make` reads. Calibration::load
  /// makes them; a cache of `make` cannot attend.
  bool needs_files = false;
  /// Sets the size: returns the parameters with which the method keeps about `share` (0 to 1) of a document of `tokens`
  /// tokens (of its prefix if the method compresses only that), given the other `settings`. A larger share never takes
  /// fewer bytes. A method may keep the size in `settings`, because resolved settings have only one
  /// (with_greatest_size()). nullptr: the method has no size to choose.
  Json (*settings_for_share)(double share, std::size_t tokens, const Json& settings) = nullptr;
  /// For a method without a size: returns the settings to compare, given the model's KV heads. nullptr: none.
  std::vector<Json> (*fixed_settings)(std::size_t kv_heads) = nullptr;
  /// Returns why the method is not defined for a model, as "found …, expected …"; else empty. nullptr: always defined.
  std::string (*obstacle)(const ModelConfig& model) = nullptr;
  /// True if its choices depend on the queries of the layer. In a model whose layers read other layers' rows, it would
  /// choose other rows for each reader.
  bool reads_queries = false;
  /// Returns notes about the method on a model, one line each. nullptr: none.
  std::vector<std::string> (*notes)(const ModelConfig& model) = nullptr;
  /// For a config without `make`: checks of its reader in addition to schema and lists, and of its tensors.
  /// @throws Error kInput, and kData for NaN or infinity in a tensor
  void (*check)(const Json& config, const std::string& where) = nullptr;
  void (*check_tensors)(const Json& config, const std::filesystem::path& path) = nullptr;
  /// `compare` scores caches with low numbers first: those that lose least at equal bytes (docs/compare.md). If time is
  /// short, caches with high numbers are left out.
  int priority = 100;
  bool compared = true;  // `compare` includes it by default

  /// Returns true if --method cannot name the method, but --config can.
  bool only_with_config() const noexcept { return make == nullptr || needs_files; }
};

/// Method::make, or a function in its place.
using LayerMaker = std::function<std::unique_ptr<LayerCache>(Parameters& parameters, const CacheLayer& layer)>;

#define KVS_DECLARE(Name) extern const Method k##Name##Method;
KVS_METHODS(KVS_DECLARE, KVS_DECLARE)
#undef KVS_DECLARE

/// Returns why a method is not defined for a model (Method::obstacle, Method::reads_queries); else empty.
std::string obstacle_of(const Method& method, const ModelConfig& model);
/// @param part  as typed: "kvcalibrate elitekv --rank";  @throws Error kUnsupported if `obstacle` is not empty
void refuse_obstacle(const std::string& obstacle, std::string_view part, const ModelConfig& model);

/// Creates the cache of one layer: the full cache if `parameters` leave the layer out. In a layer with a sliding
/// window, methods keep every token that the layer reads. @throws Error like Parameters
/// @param layer  with a cache of its own
std::unique_ptr<LayerCache> make_layer_cache(const Method& method, Parameters& parameters, std::size_t layer,
                                             const CacheShape& shape);
/// Creates the caches of all layers (make_layers()). @param parameters  of as many layers  @throws Error like
/// Parameters, also for names that the method does not have
Cache make_cache(const Method& method, Parameters& parameters, const CacheShape& shape);
/// Like make_cache() above, with `make` in place of Method::make.
Cache make_cache(const Method& method, const LayerMaker& make, Parameters& parameters, const CacheShape& shape);
/// Returns every parameter of a method, in the order in which its reader reads them.
std::vector<ParameterSpec> describe(const Method& method);

}  // namespace kvs::inline calibrate
