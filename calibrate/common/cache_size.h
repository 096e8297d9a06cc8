// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/method.h"

namespace kvs::inline calibrate {

/// Returns `settings` with a size that keeps all of a document; replaces any size in them (Method::settings_for_share).
Json with_greatest_size(const Method& method, std::size_t tokens, const Json& settings);

/// Sizes of the caches of one method for a document, measured by running a layer of each kind on states of zeros. Sizes
/// do not depend on the values of states.
class CacheSizes {
 public:
  /// @param shape  must outlive this, like `method`;  @param tokens  of a document
  CacheSizes(const Method& method, const CacheShape& shape, std::size_t tokens);

  /// Returns the most stored bytes of each layer at any time of a document, by layer; 0 for a layer without a cache of
  /// its own. Cost: a cache's own work, without attention, for each kind of layer (for every layer if `settings` has
  /// lists by layer or leaves layers at 16 bits).
  /// @throws Error kUsage like make_cache()
  std::vector<std::size_t> by_layer(const Json& settings);
  /// Returns the sum over layers. The cache's peak may be smaller: layers may peak at different times.
  std::size_t total(const Json& settings);
  /// Returns the size of the full cache at CacheBytes::kStoredValue bytes a value; budgets are shares of it.
  std::size_t full() const;
  /// Returns `settings` with the largest size (Method::settings_for_share) of at most `bytes`; nullopt if the method's
  /// smallest size is larger. For a method without a size, only `settings` are tried. Cost: log₂ tokens sizes.
  /// @throws Error like make_cache(), if the method accepts no size
  std::optional<Json> fitted(const Json& settings, std::size_t bytes);
  /// Returns the smallest size that the method accepts.
  std::size_t least(const Json& settings);
  /// Returns `settings` with a size that keeps all of a document; unchanged for a method without a size.
  Json largest(const Json& settings) const {
    return method_->settings_for_share == nullptr ? settings : with_greatest_size(*method_, tokens_, settings);
  }

 private:
  Json settings_for_share(const Json& settings, std::size_t kept) const;
  /// Returns total(), or nullopt if the method refuses the settings.
  std::optional<std::size_t> tried(const Json& settings);
  std::size_t run(LayerCache& cache, std::size_t layer, const Prefix& prefix);

  const Method* method_;
  const CacheShape* shape_;
  std::size_t tokens_;
  std::unique_ptr<Backend> backend_;
  std::map<std::string, std::size_t> known_;  // totals by settings
};

}  // namespace kvs::inline calibrate
