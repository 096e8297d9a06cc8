#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caches/kv_types.h"
#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/methods.h"
#include "model/config.h"

namespace kvs {

/// Where a method was published.
struct Paper {
  std::string_view authors, title, link;
  int year = 0;
};

/// How a method takes a prefix: a step at a time, whole (compressed once, at its end), or as it is asked to. kNone: the
/// method has no parameter that says so.
enum class Prefill { kStepwise, kWhole, kEither, kNone };

/// The layer that a cache is for.
struct CacheLayer {
  std::size_t index = 0;
  const CacheShape& shape;
  KvTypes types = {};
};

/// One way to keep a cache: what commands, configs, the schema and reports know of it. Nothing here runs a model, so
/// that the library of export/cpp can link it. What calibrates it is its Calibration.
struct Method {
  std::string_view name;     // the `method` of configs, and as typed
  std::string_view title;    // in a sentence: "FreqKV"
  std::string_view summary;  // what it keeps
  Paper paper = {};          // empty: this project's own, or nobody's
  Prefill prefill = Prefill::kStepwise;
  /// Whether it keeps rows of tokens, which may be stored in any type (read_kv_types()).
  bool rows = true;
  /// The cache of the layer that `parameters` have selected. @throws Error as Parameters.
  /// nullptr: the caches need the files of a config, which a calibration writes (Calibration::load).
  std::unique_ptr<LayerCache> (*make)(Parameters& parameters, const CacheLayer& layer) = nullptr;
  /// What sets its size: the parameters with which it keeps about `share` (0 to 1) of a document of `tokens` tokens (of
  /// its prefix, where that is what it compresses) beside the others of `settings`. More share is never less bytes. A
  /// method may leave what `settings` give of its size: resolved settings then have no other (with_greatest_size()).
  /// nullptr: the method has no size to choose.
  Json (*settings_for_share)(double share, std::size_t tokens, const Json& settings) = nullptr;
  /// Of a method that has no size: the settings that are compared, by the KV heads of the model. nullptr: none.
  std::vector<Json> (*fixed_settings)(std::size_t kv_heads) = nullptr;
  /// Why the method is not defined for a model, as "found …, expected …"; empty if it is. nullptr: it always is.
  std::string (*obstacle)(const ModelConfig& model) = nullptr;
  /// What to know about the method on a model, one line each. nullptr: nothing.
  std::vector<std::string> (*notes)(const ModelConfig& model) = nullptr;
  /// Of a config without `make`: what its reader checks beside schema and lists, and the tensors of its files.
  /// @throws Error kInput, and kData for NaN or infinity in a tensor
  void (*check)(const Json& config, const std::string& where) = nullptr;
  void (*check_tensors)(const Json& config, const std::filesystem::path& path) = nullptr;
  /// `compare` scores caches of low numbers first, those that lost least at equal bytes (docs/compare.md): where time
  /// is short, those of high numbers are left out.
  int priority = 100;
  bool compared = true;  // by `compare` unless --methods says otherwise
};

#define KVS_DECLARE(Name) extern const Method k##Name##Method;
KVS_METHODS(KVS_DECLARE, KVS_DECLARE)
#undef KVS_DECLARE

/// The cache of one layer: the full cache where `parameters` leave the layer out. In a layer with a sliding window
/// methods leave every token that it reads. @throws Error as Parameters
std::unique_ptr<LayerCache> make_layer_cache(const Method& method, Parameters& parameters, std::size_t layer,
                                             const CacheShape& shape);
/// A cache of all layers. @throws Error as Parameters, also for names that the method does not have
Cache make_cache(const Method& method, Parameters& parameters, const CacheShape& shape);
/// Every parameter of a method, in the order in which its reader asks for them.
std::vector<ParameterSpec> describe(const Method& method);

}  // namespace kvs
