// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "caches/parameters.h"
#include "caches/token_rows.h"

namespace kvs::inline caches {

/// Options that FreqKV and dropping share: at most `cache_size` slots, of which the first `sinks` are never compressed.
/// Just before a token that finds the cache full, the other N = cache_size − sinks slots become L = ⌊γN⌋.
struct SlotOptions {
  std::size_t cache_size = 0, sinks = 4;
  double gamma = 0.5;
  /// True: keys and queries are rotated at their slots; false: at their positions in the text.
  bool slots = true;

  std::size_t compressible() const noexcept { return cache_size - sinks; }  // N
  std::size_t kept() const noexcept { return static_cast<std::size_t>(gamma * static_cast<double>(compressible())); }
  bool operator==(const SlotOptions&) const = default;
};

/// Reads `cache_size`, `sinks`, `gamma` and `rope`. @throws Error like Parameters; if a compression keeps or frees
/// nothing.
SlotOptions slot_options(Parameters& parameters);

/// Plain rows are stored rotated: with slots, a compression undoes the rotation, compresses, and rotates at the new
/// slots. Coded rows are stored unrotated and rotated at their slots when they are read, so that a row that changes its
/// slot is not coded again.
class SlotCache : public LayerCache {
 public:
  SlotCache(const SlotOptions& options, const KvTypes& types) : options_(options), rows_(types) {}

  std::size_t max_tokens_per_call() const noexcept override;
  void attend(LayerStates& states, const Operand& out) override;
  std::optional<FullStart> full_start(std::size_t) const override;
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }
  std::size_t positions(std::size_t tokens) const noexcept override {
    return options_.slots ? std::min(tokens, options_.cache_size) : tokens;
  }

 protected:
  const SlotOptions& options() const noexcept { return options_; }
  /// Called with new states before they are kept; with slots they are not rotated.
  virtual void see(const LayerStates&) {}
  /// Compresses the N rows after the sinks to kept() rows; with slots the rows are not rotated.
  virtual TokenRows::Part compress(Backend& backend, TokenRows::Part rows) = 0;
  /// Like compress(), in place, for rows that are stored unrotated. By default decodes, compresses and encodes them.
  virtual void compress_held(Backend& backend, TokenRows& rows);

 private:
  void make_room(const LayerStates& states);
  bool turns_when_read() const noexcept { return options_.slots && !rows_.is_plain(); }

  SlotOptions options_;
  TokenRows rows_;
};

}  // namespace kvs::inline caches
