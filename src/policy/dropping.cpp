#include "policy/dropping.h"

#include <numeric>

namespace kvs {
namespace {

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

}  // namespace

std::unique_ptr<LayerCache> make_dropping_cache(const SlotOptions& options, const StateStore& store) {
  return std::make_unique<DroppingCache>(options, store);
}

constinit const CacheMethod kDroppingMethod{"dropping", Prefill::kStepwise,
                                            [](Parameters& parameters, const CacheLayer& layer) {
                                              return make_dropping_cache(slot_options(parameters), layer.store);
                                            }};

}  // namespace kvs
