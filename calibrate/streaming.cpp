// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/sink_notes.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

struct StreamingOptions {
  std::size_t cache_size = 0, sinks = 4;
};

/// A token attends to the first `sinks` tokens and to the last cache_size − sinks tokens (including itself), as if they
/// were in slots 0 to cache_size − 1. Scores depend only on distances, so the recent keys keep their rotation; only the
/// sinks are rotated again for each token. O(sinks) per token in addition to the attention.
/// Source: Xiao et al. (2023), StreamingLLM, arXiv:2309.17453, section 3.2.
///
/// Stored are the sinks, with keys before RoPE, and the recent tokens in any order, rotated. Rotations use positions
/// counted from `origin_`, which follows the text so that positions stay below 2 · cache_size.
class StreamingCache final : public LayerCache {
 public:
  StreamingCache(const StreamingOptions& options, const KvTypes& types)
      : options_(options), sinks_(types), recent_(types) {}

  /// The sinks come first, then the tokens that fill the cache: both attend at once.
  std::size_t max_tokens_per_call() const noexcept override {
    if (in_sinks()) return options_.sinks - seen_;
    return seen_ < options_.cache_size ? options_.cache_size - seen_ : kUnlimited;
  }

  void attend(LayerStates& states, const Operand& out) override {
    turn_later(states);
    if (in_sinks()) return attend_as_sinks(states, out);
    if (seen_ + states.tokens() <= options_.cache_size) return attend_together(states, out);
    for_each_token(states, out, [&](LayerStates& token, const Operand& row) {
      if (seen_ - origin_ + 1 == 2 * options_.cache_size) move_origin(token);
      attend_together(token, row);
    });
  }

  std::optional<FullStart> full_start(std::size_t) const override {
    return {{options_.cache_size, recent_.types(), StartKind::kStreaming, options_.sinks}};
  }
  std::size_t positions(std::size_t tokens) const noexcept override {
    return std::min(tokens, 2 * options_.cache_size);
  }
  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = sinks_.bytes();
    return bytes += recent_.bytes();
  }
  /// An attending token has its own slot, in addition to the tokens kept for the next one.
  CacheBytes peak() const noexcept override { return peak_; }

 private:
  bool in_sinks() const noexcept { return seen_ < options_.sinks; }
  std::size_t others() const noexcept { return options_.cache_size - options_.sinks - 1; }  // besides the new token

  void attend_as_sinks(LayerStates& states, const Operand& out) {
    PastKv past = sinks_.add(states);
    past.slots = states.rope;
    rotate_at(states, seen_);
    attend_rows(states, past, out);
    if (states.members() == 1) seen_ += states.tokens();
    peak_ = bytes();
  }

  /// For tokens that all read the same rows.
  void attend_together(LayerStates& states, const Operand& out) {
    const std::size_t position = seen_ - origin_, slot = std::min(seen_, options_.cache_size - 1);
    rotate_at(states, position);
    const PastKv recent = recent_.add(states);
    const TokenRows::Part sinks = turned_sinks(states, position - slot);
    attend_rows(states, {{sinks.k.view(), options_.sinks}, {sinks.v.view(), options_.sinks}, recent.k, recent.v}, out);
    if (states.members() > 1) return;
    peak_ = bytes();
    for (seen_ += states.tokens(); recent_.count() > others();
         oldest_ = (oldest_ + 1) % std::max<std::size_t>(1, others()))
      recent_.drop_each(states.backend, std::vector(recent.k.shape[1], oldest_));
  }

  /// Returns the sinks rotated for the first slots, which are the positions from `first` on.
  TokenRows::Part turned_sinks(const LayerStates& states, std::size_t first) const {
    if (options_.sinks == 0) return {};
    TokenRows::Part sinks = sinks_.copy(states.backend, 0, options_.sinks);
    states.backend.rope(sinks.k.view(), states.rope, first, RopeDirection::kForward, {});
    return sinks;
  }

  /// Rotates the recent keys back by cache_size positions: by the same angle for all positions. Coded keys are coded
  /// again, once in cache_size tokens.
  void move_origin(const LayerStates& states) {
    TokenRows::Part rows = recent_.copy(states.backend, 0, recent_.count());
    const auto [members, heads, count, head_dim] = rows.k.view().shape();
    states.backend.rope(rows.k.view().reshape<4>({members, heads * count, 1, head_dim}), states.rope,
                        options_.cache_size, RopeDirection::kUnrotate, {});
    recent_.put_keys(states.backend, 0, rows.k);
    origin_ += options_.cache_size;
  }

  StreamingOptions options_;
  TokenRows sinks_, recent_;
  CacheBytes peak_;
  std::size_t seen_ = 0, origin_ = 0;
  std::size_t oldest_ = 0;  // of the recent rows
};

std::unique_ptr<LayerCache> make_streaming(Parameters& parameters, const CacheLayer& layer) {
  StreamingOptions options;
  options.sinks = parameters.count("sinks", "first tokens that stay", options.sinks, 0);
  const std::size_t least = options.sinks == 0 ? 2 : 1;  // the new token's slot and another
  options.cache_size =
      parameters.count("cache_size", "tokens that stay, with the sinks", Parameters::kRequired, least, options.sinks);
  return std::make_unique<StreamingCache>(options, layer.types);
}

}  // namespace

constinit const Method kStreamingMethod{
    .name = "streaming",
    .title = "a sliding window",
    .summary = "the first and the last tokens",
    .paper = {.authors = "Xiao, Tian, Chen, Han, Lewis",
              .title = "Efficient Streaming Language Models with Attention Sinks",
              .link = "https://arxiv.org/abs/2309.17453",
              .year = 2023},
    .make = make_streaming,
    .settings_for_share = cache_size_for_share,
    .notes = first_token_notes,
    .priority = 3,
};

}  // namespace kvs::inline calibrate
