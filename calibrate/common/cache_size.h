#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/method.h"

namespace kvs {

/// `settings` with what keeps all of a document, whatever of a size (Method::settings_for_share) they give.
Json with_greatest_size(const Method& method, std::size_t tokens, const Json& settings);

/// What caches of one method hold of a document, found by running a layer of each kind on states of zeros: sizes do not
/// depend on what states hold.
class CacheSizes {
 public:
  /// @param shape  which must outlive this, as `method`;  @param layers  of the model
  /// @param tokens  of a document
  CacheSizes(const Method& method, const CacheShape& shape, std::size_t layers, std::size_t tokens);

  /// The most stored bytes that each layer holds at any time of a document, by layer. Cost: attention of one layer for
  /// each kind of layer (of every layer where `settings` has lists by layer).
  /// @throws Error kUsage as make_cache()
  std::vector<std::size_t> by_layer(const Json& settings);
  /// Of all layers. Where they differ their peaks may come at different times, and the cache's be less than this sum.
  std::size_t total(const Json& settings);
  /// Of the full cache at CacheBytes::kStoredValue bytes a value: what budgets are shares of.
  std::size_t full() const;
  /// `settings` with the greatest size (Method::settings_for_share) that holds at most `bytes`; nothing if the smallest
  /// that the method takes is more. A method without a size has `settings` alone to offer. Cost: log₂ tokens sizes.
  /// @throws Error as make_cache(), if the method takes no size at all
  std::optional<Json> fitted(const Json& settings, std::size_t bytes);
  /// The smallest size that the method takes.
  std::size_t least(const Json& settings);
  /// `settings` with what keeps all of a document; of a method without a size as they are.
  Json largest(const Json& settings) const {
    return method_->settings_for_share == nullptr ? settings : with_greatest_size(*method_, tokens_, settings);
  }

 private:
  Json settings_for_share(const Json& settings, std::size_t kept) const;
  /// total(), nothing where the method refuses the settings.
  std::optional<std::size_t> tried(const Json& settings);
  std::size_t run(LayerCache& cache, std::size_t layer, const Prefix& prefix);

  const Method* method_;
  const CacheShape* shape_;
  std::size_t layers_, tokens_;
  std::unique_ptr<Backend> backend_;
  std::map<std::string, std::size_t> known_;  // totals, of settings
};

}  // namespace kvs
