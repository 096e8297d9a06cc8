#include "caches/full.h"

#include "caches/token_rows.h"

namespace kvs::inline caches {
namespace {

class FullCache final : public LayerCache {
 public:
  explicit FullCache(const KvTypes& types) : rows_(types) {}

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
    if (states.members() > 1) return;
    window_ = states.window;
    // Dropped rarely, so that a token costs O(1) moves.
    if (window_ > 0 && rows_.count() >= 2 * window_) rows_.drop_front(states.backend, rows_.count() - window_);
  }

  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = rows_.bytes();
    if (window_ == 0 || rows_.count() <= window_) return bytes;
    const auto [stored, used, spare] = bytes;
    const std::size_t read = used / rows_.count() * window_;
    return {.stored = stored / rows_.count() * window_, .used = read, .spare = spare + used - read};
  }

 private:
  TokenRows rows_;
  std::size_t window_ = 0;
};

}  // namespace

std::unique_ptr<LayerCache> make_full_cache(const KvTypes& types) { return std::make_unique<FullCache>(types); }

}  // namespace kvs::inline caches
