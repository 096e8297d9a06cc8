// SPDX-License-Identifier: Apache-2.0
#include "caches/slot_cache.h"

#include "core/error.h"

namespace kvs::inline caches {

SlotOptions slot_options(Parameters& parameters) {
  static constexpr std::string_view kRope[] = {"pre", "post"};
  SlotOptions options;
  options.sinks = parameters.count("sinks", "first tokens that stay", options.sinks, 0);
  options.cache_size = parameters.count("cache_size", "number of slots; when all are used, a compression frees some",
                                        Parameters::kRequired, 2, options.sinks);
  options.gamma =
      parameters.real("gamma", "share of the slots after the sinks that a compression keeps", options.gamma, 0, 1);
  options.slots =
      parameters.choice("rope", "pre: positions are slots; post: positions are those of the text", kRope) == 0;
  if (options.kept() == 0 || options.kept() == options.compressible())
    parameters.refuse("gamma", "found " + Json(options.gamma).dump() + ", which keeps " +
                                   std::to_string(options.kept()) + " of " + std::to_string(options.compressible()) +
                                   " slots, expected one that keeps some and frees some");
  return options;
}

std::size_t SlotCache::max_tokens_per_call() const noexcept {
  const bool full = rows_.count() == options_.cache_size;
  return options_.cache_size - (full ? options_.sinks + options_.kept() : rows_.count());
}

std::optional<FullStart> SlotCache::full_start(std::size_t) const {
  return {{options_.cache_size, rows_.types(), turns_when_read() ? StartKind::kSlots : StartKind::kFull}};
}

void SlotCache::make_room(const LayerStates& states) {
  Backend& backend = states.backend;
  if (!options_.slots || turns_when_read()) return compress_held(backend, rows_);
  TokenRows::Part rows = rows_.copy(backend, options_.sinks, options_.compressible());
  backend.rope(rows.k.view(), states.rope, options_.sinks, RopeDirection::kInverse, {});
  const TokenRows::Part kept = compress(backend, std::move(rows));
  backend.rope(kept.k.view(), states.rope, options_.sinks, RopeDirection::kForward, {});
  rows_.put(backend, options_.sinks, kept);
  rows_.truncate(options_.sinks + options_.kept());
}

void SlotCache::compress_held(Backend& backend, TokenRows& rows) {
  rows.put(backend, options_.sinks, compress(backend, rows.copy(backend, options_.sinks, options_.compressible())));
  rows.truncate(options_.sinks + options_.kept());
}

void SlotCache::attend(LayerStates& states, const Operand& out) {
  if (rows_.count() == options_.cache_size && states.members() == 1)
    compression(states.backend, [&] { make_room(states); });
  if (rows_.count() + states.tokens() > options_.cache_size)
    throw Error(ErrorCode::kInternal, "cache", "more tokens at once than there are free slots");
  const std::size_t first = options_.slots ? rows_.count() : states.first_position;
  if (options_.slots) turn_later(states);
  if (options_.slots) see(states);
  if (!turns_when_read()) rotate_at(states, first);
  if (!options_.slots) see(states);
  PastKv past = rows_.add(states);
  if (turns_when_read()) {
    past.slots = states.rope;
    rotate_at(states, first);
  }
  attend_rows(states, past, out);
}

}  // namespace kvs::inline caches
