#include "policy/dropping.h"

namespace kvs {
namespace {

class DroppingCache final : public SlotCache {
 public:
  using SlotCache::SlotCache;

 private:
  TokenRows::Part compress(Backend& backend, TokenRows::Part rows) override {
    const std::size_t kept = options().kept(), first = options().compressible() - kept;
    return {RowBuffer::part_of(backend, rows.k.view(), first, kept),
            RowBuffer::part_of(backend, rows.v.view(), first, kept)};
  }
};

}  // namespace

std::unique_ptr<LayerCache> make_dropping_cache(const SlotOptions& options) {
  return std::make_unique<DroppingCache>(options);
}

constinit const CacheMethod kDroppingMethod{"dropping", Prefill::kStepwise, [](Parameters& parameters, std::size_t) {
                                              return make_dropping_cache(slot_options(parameters));
                                            }};

}  // namespace kvs
