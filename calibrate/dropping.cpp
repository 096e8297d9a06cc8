// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "caches/slot_cache.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

/// A compression keeps the last ⌊γN⌋ of the slots after the sinks: FreqKV's schedule without its transform, as in that
/// paper's baseline.
class DroppingCache final : public SlotCache {
 public:
  using SlotCache::SlotCache;

 private:
  TokenRows::Part compress(Backend& backend, TokenRows::Part rows) override {
    const std::size_t kept = options().kept();
    return {RowBuffer::part_of(backend, rows.k.view(), first_kept(), kept),
            RowBuffer::part_of(backend, rows.v.view(), first_kept(), kept)};
  }
  void compress_held(Backend& backend, TokenRows& rows) override {
    std::vector<std::size_t> kept(options().kept());
    std::iota(kept.begin(), kept.end(), first_kept());
    rows.keep(backend, options().sinks, options().compressible(), std::vector(rows.held().k.shape[1], kept));
  }
  std::size_t first_kept() const noexcept { return options().compressible() - options().kept(); }
};

std::unique_ptr<LayerCache> make_dropping(Parameters& parameters, const CacheLayer& layer) {
  return std::make_unique<DroppingCache>(slot_options(parameters), layer.types);
}

}  // namespace

constinit const Method kDroppingMethod{
    .name = "dropping",
    .title = "dropping",
    .summary = "the first tokens and the last slots; drops many tokens at once (FreqKV's baseline)",
    .make = make_dropping,
    .settings_for_share = cache_size_for_share,
    .priority = 7,
};

}  // namespace kvs::inline calibrate
