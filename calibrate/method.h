#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "caches/row_store.h"

namespace kvs {

/// How a method takes a prefix: a step at a time, whole (compressed once, at its end), or as it is asked to.
enum class Prefill { kStepwise, kWhole, kEither };

/// The layer that a cache is for.
struct CacheLayer {
  std::size_t index = 0;
  const CacheShape& shape;
  StateStore store = {};
};

/// One way to keep a cache, by the name that a config's `method` gives it.
struct CacheMethod {
  std::string_view name;
  Prefill prefill;
  /// The cache of the layer that `parameters` have selected. @throws Error as Parameters.
  std::unique_ptr<LayerCache> (*make)(Parameters& parameters, const CacheLayer& layer);
  /// Whether it keeps rows of tokens, which may be stored in any form (read_store()).
  bool rows = true;
  /// What sets its size: the parameters with which it keeps about `share` (0 to 1) of a document of `tokens` tokens (of
  /// its prefix, where that is what it compresses) beside the others of `settings`. More share is never less bytes. A
  /// method may leave what `settings` give of its size: resolved settings then have no other (with_greatest_size()).
  /// nullptr: the method has no size to choose.
  Json (*sized)(double share, std::size_t tokens, const Json& settings) = nullptr;
};

/// Each is defined in the file of its name; policy/methods.cpp lists them.
extern const CacheMethod kFullMethod, kStreamingMethod, kDroppingMethod, kFreqkvMethod, kFaedkvMethod, kLagkvMethod,
    kH2oMethod, kSnapkvMethod, kL2normMethod, kKiviMethod, kGqaMethod;

}  // namespace kvs
