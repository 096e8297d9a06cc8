#include "policy/dropping.h"

namespace kvs {
namespace {

class DroppingCache final : public SlotCache {
 public:
  using SlotCache::SlotCache;

 private:
  TokenRows::Part compress(Backend& backend, TokenRows::Part rows) override {
    TokenRows all;
    all.append(backend, rows.k.view(), rows.v.view(), options().compressible() - options().kept(), options().kept());
    return all.copy(backend, 0, options().kept());
  }
};

}  // namespace

std::unique_ptr<LayerCache> make_dropping_cache(const SlotOptions& options) {
  return std::make_unique<DroppingCache>(options);
}

}  // namespace kvs
