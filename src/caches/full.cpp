// SPDX-License-Identifier: Apache-2.0
#include "caches/full.h"

#include <algorithm>

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
    if (states.chunk > 0) drop_chunks(states);
  }

  std::optional<FullStart> full_start(std::size_t) const override { return {{kUnlimited, rows_.types()}}; }
  bool holds_every_token() const noexcept override { return window_ == 0; }
  CacheBytes bytes() const noexcept override {
    return bytes_of(window_ == 0 ? rows_.count() : std::min(window_, rows_.count()));
  }
  CacheBytes peak() const noexcept override { return peak_rows_ == 0 ? bytes() : bytes_of(peak_rows_); }

 private:
  /// Drops the chunks before that of the last token.
  void drop_chunks(const LayerStates& states) {
    const std::size_t chunk = states.chunk, last = states.first_position + states.tokens() - 1, left = last % chunk + 1;
    peak_rows_ = last / chunk > states.first_position / chunk ? chunk : left;
    if (rows_.count() > left) rows_.drop_front(states.backend, rows_.count() - left);
  }

  /// Returns the memory of `rows` rows that later tokens may read; the others are spare.
  CacheBytes bytes_of(std::size_t rows) const noexcept {
    CacheBytes bytes = rows_.bytes();
    if (rows == rows_.count()) return bytes;
    const auto [stored, used, spare] = bytes;
    const std::size_t read = used / rows_.count() * rows;
    return {
        .stored = stored / rows_.count() * rows, .used = read, .spare = spare + used - std::min(read, spare + used)};
  }

  TokenRows rows_;
  std::size_t window_ = 0, peak_rows_ = 0;  // peak_rows_: with chunks, of the last call
};

}  // namespace

std::unique_ptr<LayerCache> make_full_cache(const KvTypes& types) { return std::make_unique<FullCache>(types); }

}  // namespace kvs::inline caches
